"""Times of work on a GPU, taken by the GPU: events on the current stream, and a way to empty its L2 cache.

    timer = gpu_timer()                   None where kernels run on the CPU
    begin = timer.record(); launch(); end = timer.record()
    timer.synchronize(); timer.elapsed(begin, end)          milliseconds

Through torch where the program uses it with CUDA, so that its allocator and streams are used; else through the driver.
"""

from __future__ import annotations

from typing import Any, Protocol

from deuteron.backend.cuda.launch.libcuda import CudaDriver, cuda_driver, num_devices
from deuteron.backend.cuda.launch.streams import current_device, current_stream, torch_with_cuda
from deuteron.settings import settings


class GpuTimer(Protocol):
    """Events on the current stream of the current device."""

    def record(self) -> Any:
        """An event that happens when all that was launched before it has ended."""

    def elapsed(self, begin: Any, end: Any) -> float:
        """Milliseconds from one event to another; both have happened."""

    def synchronize(self) -> None:
        """Wait for all that was launched."""

    def empty_cache(self) -> None:
        """Launch something that takes all data out of the L2 cache."""


class TorchTimer:
    def __init__(self, torch: Any, l2_bytes: int):
        self._torch = torch
        self._buffer = torch.empty(2 * l2_bytes, dtype=torch.int8, device="cuda")

    def record(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def elapsed(self, begin: Any, end: Any) -> float:
        return begin.elapsed_time(end)

    def synchronize(self) -> None:
        self._torch.cuda.synchronize()

    def empty_cache(self) -> None:
        self._buffer.zero_()


class DriverTimer:
    """The same without torch; its memory and events are freed with it."""

    def __init__(self, driver: CudaDriver, device: int, l2_bytes: int):
        self._driver = driver
        self._events: list[Any] = []
        if driver.current_device() is None:
            driver.make_current(device)
        self._stream = current_stream(device)
        self._num_bytes = 2 * l2_bytes
        self._buffer = driver.call("cuMemAlloc", self._num_bytes)

    def __del__(self) -> None:
        for event in self._events:
            self._driver.call("cuEventDestroy", event)
        if hasattr(self, "_buffer"):
            self._driver.call("cuMemFree", self._buffer)

    def record(self) -> Any:
        event = self._driver.call("cuEventCreate", 0)
        self._events.append(event)
        self._driver.call("cuEventRecord", event, self._stream)
        return event

    def elapsed(self, begin: Any, end: Any) -> float:
        return self._driver.call("cuEventElapsedTime", begin, end)

    def synchronize(self) -> None:
        self._driver.call("cuCtxSynchronize")

    def empty_cache(self) -> None:
        self._driver.call("cuMemsetD8Async", self._buffer, 0, self._num_bytes, self._stream)


def gpu_timer() -> GpuTimer | None:
    """A timer for the current GPU; None where there is none, or where DEUTERON_TARGET says that it is not used."""
    if (settings.target or "").startswith("cpu") or not num_devices():
        return None
    driver = cuda_driver()
    device = current_device(driver)
    l2_bytes = driver.attribute("L2_CACHE_SIZE", device)
    torch = torch_with_cuda()
    return TorchTimer(torch, l2_bytes) if torch is not None else DriverTimer(driver, device, l2_bytes)
