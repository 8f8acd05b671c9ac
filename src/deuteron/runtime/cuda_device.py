"""NVIDIA GPUs in the shape that Triton's programs ask for them: `driver.active` where there is one.

    driver.active.get_current_device(), driver.active.get_current_stream()      0, 94013...
    driver.active.get_active_torch_device()                                     device(type="cuda", index=0)
    driver.active.utils.get_device_properties(0)["multiprocessor_count"]        132

Where torch is installed with CUDA it is asked, so that both agree on what is current; else the driver is.
"""

from __future__ import annotations

from typing import Any

from deuteron.backend.cuda.launch.libcuda import cuda_driver, has_gpu, num_devices
from deuteron.backend.cuda.launch.streams import current_device, current_stream, torch_with_cuda
from deuteron.backend.devices import Device, device_target
from deuteron.compiler import resolve_target
from deuteron.options import Target
from deuteron.runtime.driver_base import DriverBase

_EMPTIED_BYTES = 256 << 20

# What Triton calls an attribute of a device, and what cuda.h does.
_PROPERTIES = {
    "max_shared_mem": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "max_num_regs": "MAX_REGISTERS_PER_BLOCK",
    "multiprocessor_count": "MULTIPROCESSOR_COUNT",
    "warpSize": "WARP_SIZE",
    "sm_clock_rate": "CLOCK_RATE",
    "mem_clock_rate": "MEMORY_CLOCK_RATE",
    "mem_bus_width": "GLOBAL_MEMORY_BUS_WIDTH",
}


class CUDADeviceInterface:
    """The calls of `torch.cuda` that launching and timing code makes, for programs without torch."""

    @staticmethod
    def current_device() -> int:
        return current_device(cuda_driver())

    @staticmethod
    def set_device(device: int) -> None:
        cuda_driver().make_current(device)

    @staticmethod
    def device_count() -> int:
        return num_devices()

    @staticmethod
    def is_available() -> bool:
        return num_devices() > 0

    @staticmethod
    def synchronize(device: int | None = None) -> None:
        """Wait for everything that was launched on a device; None is the current one."""
        driver = cuda_driver()
        with driver.context_of(current_device(driver) if device is None else device):
            driver.call("cuCtxSynchronize")


class CUDAProperties:
    """What Triton's programs ask `driver.active.utils`."""

    @staticmethod
    def get_device_properties(device: int) -> dict[str, int]:
        driver = cuda_driver()
        return {name: driver.attribute(attribute, device) for name, attribute in _PROPERTIES.items()}


class CUDADriver(DriverBase):
    """What is asked of the active device."""

    utils = CUDAProperties
    c_pointer = "CUdeviceptr"

    def get_current_target(self) -> Target:
        target = resolve_target(None)
        return target if target.backend == "cuda" else device_target(Device("cuda"))

    def get_current_device(self) -> int:
        return current_device(cuda_driver())

    def set_current_device(self, device: int) -> None:
        self.get_device_interface().set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        return current_stream(self.get_current_device() if device is None else device)

    def get_active_torch_device(self) -> Any:
        import torch  # deferred: only whoever has torch asks

        return torch.device("cuda", self.get_current_device())

    def get_device_interface(self) -> Any:
        torch = torch_with_cuda()
        return torch.cuda if torch is not None else CUDADeviceInterface

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor of torch, several times the second-level cache."""
        import torch  # deferred: only whoever has torch asks

        return torch.empty(_EMPTIED_BYTES // 4, dtype=torch.int32, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()

    @staticmethod
    def is_active() -> bool:
        return has_gpu()
