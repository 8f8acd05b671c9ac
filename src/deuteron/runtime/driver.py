"""The device that kernels run on, in the shape that Triton's programs ask for it.

    driver.active.get_current_target()              Target("cuda", 90), or Target("cpu", "native", 1)
    driver.active.get_device_interface().synchronize()
    driver.active.get_benchmarker()(f, quantiles=[0.5])

What is active is the machine's GPU, or DEUTERON_TARGET. The CPU is one device, with the number 0; a launch on it has
ended when it returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deuteron import testing
from deuteron.compiler import resolve_target
from deuteron.options import Target
from deuteron.runtime.cuda_device import CUDADriver


class CPUDeviceInterface:
    """The calls of `torch.cuda` that launching and timing code makes, for a device that has no queue."""

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def set_device(device: int) -> None:
        """There is only device 0."""

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def synchronize(device: int | None = None) -> None:
        """Launches have ended when they return."""


class Driver:
    """What is asked of the active device."""

    def get_current_target(self) -> Target:
        return resolve_target(None)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only device 0."""

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch  # deferred: only whoever has torch asks

        return torch.device("cpu")

    def get_device_interface(self) -> type[CPUDeviceInterface]:
        return CPUDeviceInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        return testing.do_bench

    def is_active(self) -> bool:
        return True


class DriverConfig:
    """Holds the active driver; another one can be set, and taken back."""

    def __init__(self) -> None:
        self._drivers: dict[str, Any] = {"cpu": Driver(), "cuda": CUDADriver()}
        self._chosen: Any = None

    @property
    def default(self) -> Any:
        """The driver of the target that a launch has by default."""
        return self._drivers[resolve_target(None).backend]

    @property
    def active(self) -> Any:
        return self._chosen or self.default

    def set_active(self, driver: Any) -> None:
        self._chosen = driver

    def reset_active(self) -> None:
        self._chosen = None


driver = DriverConfig()
