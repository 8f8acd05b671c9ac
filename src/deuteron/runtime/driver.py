"""The device that kernels run on, in the shape that Triton's programs ask for it.

    driver.active.get_current_target()              Target("cuda", 90), or Target("cpu", "native", 1)
    driver.active.get_device_interface().synchronize()
    driver.active.get_benchmarker()(f, quantiles=[0.5])
    driver.active.utils.get_device_properties(0)["multiprocessor_count"]

What is active is the machine's GPU, or DEUTERON_TARGET. The CPU is one device, with the number 0; a launch on it has
ended when it returns.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from deuteron.backend.devices import CPU, device_target
from deuteron.compiler import resolve_target
from deuteron.errors import UsageError
from deuteron.options import Target
from deuteron.runtime.cuda_device import CUDADriver
from deuteron.runtime.driver_base import DriverBase
from deuteron.settings import settings

_EMPTIED_BYTES = 32 << 20  # what is written between timings: more than a core's share of any cache
_KILOHERTZ = Path("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")


class CPUEvent:
    """A moment, as `torch.cuda.Event` is one: `begin.elapsed_time(end)` says the milliseconds between two."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self._seconds: float | None = None

    def record(self, stream: Any = None) -> None:
        self._seconds = perf_counter()

    def elapsed_time(self, end: CPUEvent) -> float:
        if self._seconds is None or end._seconds is None:
            raise UsageError("Time passes between two events that were recorded: call record() of both first.")
        return (end._seconds - self._seconds) * 1000

    def synchronize(self) -> None:
        """What was launched before it has ended."""

    def query(self) -> bool:
        return True


class CPUDeviceInterface:
    """The calls of `torch.cuda` that launching and timing code makes, for a device that has no queue."""

    Event = CPUEvent

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
    def current_stream(device: int | None = None) -> int:
        """Nothing waits on the CPU: what takes a stream is given the number 0."""
        return 0

    @staticmethod
    def synchronize(device: int | None = None) -> None:
        """Launches have ended when they return."""


class EmptiedCache(bytearray):
    """Memory that a timing overwrites, so that nothing else is left in the caches."""

    def zero_(self) -> EmptiedCache:
        self[:] = bytes(len(self))
        return self


class CPUProperties:
    """What Triton's programs ask `driver.active.utils`."""

    @staticmethod
    def get_device_properties(device: int = 0) -> dict[str, int]:
        """Of a core, on which a program runs: a tile is fast as long as it is in the second-level cache, and a lane is
        all that there is of a warp. What is not known is 0."""
        return {
            "max_shared_mem": _second_level_cache_bytes(),
            "max_num_regs": 32,
            "multiprocessor_count": settings.num_threads,
            "warpSize": 1,
            "sm_clock_rate": int(_KILOHERTZ.read_text()) if _KILOHERTZ.exists() else 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 64,
        }


def _second_level_cache_bytes() -> int:
    """1 MB where the system does not say."""
    try:
        return os.sysconf("SC_LEVEL2_CACHE_SIZE") or 1 << 20
    except (ValueError, OSError):
        return 1 << 20


class Driver(DriverBase):
    """What is asked of the active device."""

    utils = CPUProperties

    def get_current_target(self) -> Target:
        target = resolve_target(None)
        return target if target.backend == CPU.backend else device_target(CPU)

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

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor where the program uses torch, of which programs call methods."""
        torch = sys.modules.get("torch")
        return torch.empty(_EMPTIED_BYTES // 4, dtype=torch.int32) if torch else EmptiedCache(_EMPTIED_BYTES)

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()

    @staticmethod
    def is_active() -> bool:
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

    def set_active_to_cpu(self) -> None:
        """As programs for Triton's own CPU target say; kernels run where their arrays are all the same."""
        self._chosen = self._drivers["cpu"]

    def set_active_to_gpu(self) -> str:
        """The name of its backend; a RuntimeError where there is none."""
        if not CUDADriver.is_active():
            raise RuntimeError("no GPU was found: the CPU is `driver.set_active_to_cpu()`")
        self._chosen = self._drivers["cuda"]
        return "cuda"

    def get_active_gpus(self) -> list[str]:
        """The backends that have a GPU here."""
        return ["cuda"] if CUDADriver.is_active() else []

    def reset_active(self) -> None:
        self._chosen = None


driver = DriverConfig()
