"""Loads a cubin and launches it on a GPU.

    launch = load_kernel(cubin, metadata)
    launch((8, 1, 1), [x.data_ptr(), 1000])             on the current device and stream
    launch((8, 1, 1), [x.data_ptr(), 1000], device=1)   on a device's current stream, or on `stream=`

The grid counts programs, each of them `num_ctas` CTAs. A launch has only been queued when it returns. One library
serves all devices; what a device must be told (shared memory above 48 KB) is told at the first launch there.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

from deuteron.backend.arguments import SLOT_BYTES, ArgumentSlots
from deuteron.backend.cuda.launch.launch_attributes import launch_attributes, make_config
from deuteron.backend.cuda.launch.libcuda import CudaDriver, DriverError, cuda_driver
from deuteron.backend.cuda.launch.map_encoder import MapEncoder
from deuteron.backend.cuda.launch.native_launch import launch_function, target_words
from deuteron.backend.cuda.launch.streams import current_device, current_stream, native_stream
from deuteron.backend.cuda.target import STATIC_SHARED_BYTES
from deuteron.backend.metadata import KernelMetadata
from deuteron.backend.native_launch import NativeLaunch
from deuteron.backend.tensor_map import ALIGNMENT, SIZE, NotCopiedError
from deuteron.errors import LaunchError, OutOfResources
from deuteron.settings import settings
from deuteron.tracebacks import api_boundary

MAX_GRID = (2**31 - 1, 65535, 65535)

_INVALID_CONTEXT = 201
# After these no call of the process works any more, so the launch that is told may not be the one that failed.
_STICKY = range(700, 720)
_ASSERT = 710
_EARLIER = ". An earlier kernel of this process may have caused it: with DEUTERON_SYNC=1 the launch that did is told"


def max_grid(kernel: KernelMetadata) -> tuple[int, int, int]:
    """The most programs along each axis that a kernel can be launched with."""
    return (MAX_GRID[0] // kernel.num_ctas, *MAX_GRID[1:])


def check_grid(grid: Sequence[int], kernel: KernelMetadata) -> None:
    """Raise LaunchError where a grid has too many programs; one without any launches nothing."""
    limits = max_grid(kernel)
    if min(grid) < 0 or (min(grid) > 0 and any(e > limit for e, limit in zip(grid, limits, strict=True))):
        raise LaunchError(
            f"the grid of kernel '{kernel.name}' is {tuple(grid)}: its extents go from 0 to "
            f"{', '.join(map(str, limits))}"
        )


class _Memory(threading.local):
    """A thread's own copy of the arguments and tensor maps, and the array of their addresses that a launch takes."""

    def __init__(self, count: int, num_maps: int = 0):
        self.slots = (ctypes.c_uint64 * max(count, 1))()
        self._space = (ctypes.c_char * (SIZE * num_maps + ALIGNMENT))()
        first, self._maps = ctypes.addressof(self.slots), ctypes.addressof(self._space)
        self._maps += -self._maps % ALIGNMENT
        pointers = [
            *(first + SLOT_BYTES * index for index in range(count)),
            *(self._maps + SIZE * index for index in range(num_maps)),
        ]
        self._pointers = (ctypes.c_uint64 * max(len(pointers), 1))(*pointers)
        self.address = ctypes.addressof(self._pointers)

    def write_maps(self, maps: Sequence[bytes]) -> None:
        ctypes.memmove(self._maps, b"".join(maps), SIZE * len(maps))


class LoadedKernel:
    """A kernel in the driver; called with a grid and arguments, it is queued on a stream."""

    def __init__(self, cubin: bytes, metadata: KernelMetadata, driver: CudaDriver):
        self._driver = driver
        self._metadata = metadata
        self._name = metadata.name
        self._arguments = ArgumentSlots(metadata.name, metadata.runtime_params)
        self._memory = _Memory(len(metadata.runtime_params), len(metadata.tensor_maps))
        self._maps = MapEncoder(metadata.name, metadata.tensor_maps) if metadata.tensor_maps else None
        self._num_threads = metadata.num_threads
        self._num_ctas = metadata.num_ctas
        self._max_grid = max_grid(metadata)
        self._most_programs = min(self._max_grid[0], metadata.most_programs or MAX_GRID[0])
        # Launches instead where there are more: whoever loads the kernel says what.
        self.launch_of_more: Callable[[int], Callable[..., None]] | None = None
        self.launch_of_pointers: Callable[[str], Callable[..., None]] | None = None
        self._shared = metadata.shared
        self._ready: set[int] = set()
        self._api_launch = driver.api.cuLaunchKernel
        self._attributes = launch_attributes(metadata.options, int(metadata.target.arch))
        try:
            self._loaded = driver.load(cubin, metadata.symbol)
        except DriverError as error:
            raise LaunchError(f"kernel '{self._name}' for {metadata.target} cannot be loaded: {error}") from error
        self.function = self._loaded.function

    def __call__(
        self, grid: Sequence[int], values: Sequence[Any], device: int | None = None, stream: int | None = None
    ) -> None:
        driver = self._driver
        x, y, z = grid
        _, max_y, max_z = self._max_grid
        if not (0 < x <= self._most_programs and 0 < y <= max_y and 0 < z <= max_z):
            check_grid(grid, self._metadata)
            if min(grid) > 0:
                self._launch_more(grid, values, device, stream)
            return
        if device is None:
            device = current_device(driver)
        if device not in self._ready:
            self._prepare(device)
        memory = self._memory
        self._arguments.write(memory.slots, values)
        if self._maps is not None:
            try:
                memory.write_maps(self._maps.encoded(values))
            except NotCopiedError as error:
                if self.launch_of_pointers is None:
                    raise
                self.launch_of_pointers(error.message)(grid, values, device=device, stream=stream)
                return
        if driver.num_devices == 1:
            self._launch(x, y, z, memory.address, device, stream)
        else:
            with driver.context_of(device):
                self._launch(x, y, z, memory.address, device, stream)

    def _launch_more(self, grid: Sequence[int], values: Sequence[Any], device: int | None, stream: int | None) -> None:
        """Launch more programs than the code is for."""
        if self.launch_of_more is None:
            raise LaunchError(
                f"the grid of kernel '{self._name}' is {tuple(grid)}: it was compiled for at most "
                f"{self._most_programs} programs along the first axis, compile it with many_programs=True"
            )
        self.launch_of_more(grid[0])(grid, values, device=device, stream=stream)

    def run_packed(
        self, grid: Sequence[int], packed: bytes, stream: int | None = None, device: int | None = None
    ) -> None:
        """Launch with the arguments as `ArgumentSlots` packs them."""
        self(grid, self._arguments.unpack(packed), device, stream)

    def native_launch(self, device: int | None = None) -> NativeLaunch | None:
        """How the compiled launcher launches on a device that the kernel has been launched on."""
        if device not in self._ready or not self._driver.is_library or settings.sync:
            return None
        fields = {
            "function": int(self.function),
            "num_threads": self._num_threads,
            "num_ctas": self._num_ctas,
            "max_x": self._most_programs,
            "shared": self._shared,
            "num_arguments": self._arguments.count,
        }
        asked = self._metadata.tensor_maps, self._attributes
        target = target_words(*asked, device, self._driver.num_devices == 1, **fields)
        if target is None:
            return None
        stream, conditions = native_stream()
        return NativeLaunch(launch_function(), target, self._fail, stream, device, conditions)

    @api_boundary
    def _fail(self, status: int, extents: Sequence[int]) -> None:
        raise self._failure(self._driver.status(status), tuple(extents))

    def prepare(self, device: int | None = None) -> None:
        """Do what a first launch on a device, or on the current one, would have to: one that is captured may not."""
        device = current_device(self._driver) if device is None else device
        if device not in self._ready:
            self._prepare(device)
        with self._driver.context_of(device):
            self._driver.call("cuKernelGetFunction", self._loaded.kernel)

    def _launch(self, x: int, y: int, z: int, addresses: int, device: int, stream: int | None) -> None:
        stream = current_stream(device) if stream is None else stream
        grid = x * self._num_ctas, y, z
        status = self._queue(grid, addresses, stream)
        if status == _INVALID_CONTEXT:  # a thread that has not used CUDA yet
            self._driver.make_current(device)
            status = self._queue(grid, addresses, stream)
        if status != 0:
            raise self._failure(status, (x, y, z))
        if settings.sync and not self._driver.is_capturing(stream):
            self._wait(stream, (x, y, z))

    def _queue(self, blocks: tuple[int, int, int], addresses: int, stream: Any) -> Any:
        """The driver's status."""
        api, shared = self._driver.api, self._shared
        if self._attributes:
            config = make_config(api, self._attributes, blocks, self._num_threads, shared, stream)
            (status,) = api.cuLaunchKernelEx(config, self.function, addresses, 0)
        else:
            launch = self._api_launch
            (status,) = launch(self.function, *blocks, self._num_threads, 1, 1, shared, stream, addresses, 0)
        return status

    def _wait(self, stream: int, grid: tuple[int, int, int]) -> None:
        """Wait until the kernel has ended: what goes wrong is its own fault, if all launches are waited for."""
        status, *_ = self._driver.api.cuStreamSynchronize(stream)
        if status != 0:
            raise self._failure(status, grid, "cuStreamSynchronize")

    def _failure(self, status: Any, grid: tuple[int, int, int], function: str = "") -> LaunchError:
        launch = "cuLaunchKernelEx" if self._attributes else "cuLaunchKernel"
        error = self._driver.error(function or launch, status)
        hint = _EARLIER if error.status in _STICKY and not function else ""
        hint = ". A tl.device_assert failed: standard error says which" if error.status == _ASSERT else hint
        return LaunchError(
            f"kernel '{self._name}' for {self._metadata.target}, grid {grid}, {self._num_threads} threads, "
            f"{self._shared} bytes of shared memory: {error}{hint}"
        )

    def _prepare(self, device: int) -> None:
        """Check that the device has what the kernel needs, and let the kernel have it."""
        try:
            self._check_resources(device)
            if self._shared > STATIC_SHARED_BYTES:
                self._driver.allow_shared_bytes(self._loaded.kernel, self._shared, device)
        except DriverError as error:
            capability = self._driver.capability(device) / 10
            raise LaunchError(
                f"kernel '{self._name}' for {self._metadata.target} cannot run on GPU {device}, "
                f"which has compute capability {capability}: {error}"
            ) from error
        self._ready.add(device)

    def _check_resources(self, device: int) -> None:
        max_threads = self._driver.kernel_attribute(self._loaded.kernel, "MAX_THREADS_PER_BLOCK", device)
        if self._num_threads > max_threads:
            raise OutOfResources(self._num_threads, max_threads, "threads per block")
        max_shared = self._driver.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", device)
        if self._shared > max_shared:
            raise OutOfResources(self._shared, max_shared, "bytes of shared memory")


def load_kernel(cubin: bytes, metadata: KernelMetadata, driver: CudaDriver | None = None) -> Callable[..., None]:
    """The function that launches a kernel: `launch(grid, values, device=None, stream=None)`; raises LaunchError."""
    return LoadedKernel(cubin, metadata, driver or cuda_driver())
