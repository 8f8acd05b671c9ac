"""The CUDA driver as launching needs it, through the package `cuda-bindings`, which is imported at the first use.

    driver = cuda_driver()
    driver.num_devices, driver.capability(0)        1, 90
    kernel = driver.load(cubin, "add")              for every device; the driver moves it there when it is launched

A call that the driver refuses is a LaunchError with the name of the driver's error. Measured: importing the package
takes 80 ms; a launch through it 0.7 us until the driver, through ctypes 1.3 us.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from deuteron.errors import LaunchError

LIBRARY = "libcuda.so.1"

_OUT_OF_MEMORY = 2
_NOT_INITIALIZED = 3
_INVALID_CONTEXT = 201
_ADVICE = {
    _OUT_OF_MEMORY: ": the device has no memory left for it; free arrays (of torch also torch.cuda.empty_cache())",
    _NOT_INITIALIZED: ": the driver takes no calls in a process that was forked after CUDA was initialised; "
    "start processes by 'spawn', or before the first use of the GPU",
}


class DriverError(LaunchError):
    """The driver refused a call; `status` is its number, `name` what cuda.h calls it."""

    def __init__(self, function: str, status: int, name: str):
        advice = _ADVICE.get(status, "")
        super().__init__(f"{function} failed with {name} ({status}){advice}")
        self.function, self.status, self.name = function, status, name

    def __reduce__(self):
        return type(self), (self.function, self.status, self.name)


class LoadedLibrary(NamedTuple):
    """A cubin in the driver and its kernel; `function` is what a launch takes."""

    library: Any
    kernel: Any
    function: Any


class CudaDriver:
    """The driver behind an object with the functions of `cuda.bindings.driver`. Devices are given by number."""

    def __init__(self, api: Any, is_library: bool = False):
        """`is_library`: its functions are those of LIBRARY, which machine code may call."""
        self.api, self.is_library = api, is_library
        self.call("cuInit", 0)
        self.num_devices: int = self.call("cuDeviceGetCount")
        self._contexts: dict[int, Any] = {}
        self.capability = cache(self._capability)

    def call(self, function: str, *args: Any) -> Any:
        """What a function of the driver returns: nothing, one value, or a tuple; raises DriverError."""
        status, *results = getattr(self.api, function)(*args)
        if status != 0:
            raise self.error(function, status)
        return results[0] if len(results) == 1 else results or None

    def error(self, function: str, status: Any) -> DriverError:
        return DriverError(function, int(status), getattr(status, "name", f"error {int(status)}"))

    def status(self, number: int) -> Any:
        """The driver's status of this number, with its name."""
        return self.api.CUresult(number)

    def attribute(self, name: str, device: int) -> int:
        """A device's attribute, by its name in cuda.h without CU_DEVICE_ATTRIBUTE_."""
        attribute = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return self.call("cuDeviceGetAttribute", attribute, self._handle(device))

    def _capability(self, device: int) -> int:
        """Compute capability: 90 is 9.0."""
        major = self.attribute("COMPUTE_CAPABILITY_MAJOR", device)
        return 10 * major + self.attribute("COMPUTE_CAPABILITY_MINOR", device)

    def _handle(self, device: int) -> Any:
        return self.call("cuDeviceGet", device)

    def load(self, cubin: bytes, symbol: str) -> LoadedLibrary:
        """Give a cubin to the driver. It belongs to no context."""
        library = self.call("cuLibraryLoadData", cubin, None, None, 0, None, None, 0)
        try:
            kernel = self.call("cuLibraryGetKernel", library, symbol.encode())
        except DriverError:
            self.call("cuLibraryUnload", library)
            raise
        return LoadedLibrary(library, kernel, self.api.CUfunction(int(kernel)))

    def kernel_attribute(self, kernel: Any, name: str, device: int) -> int:
        attribute = getattr(self.api.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}")
        return self.call("cuKernelGetAttribute", attribute, kernel, self._handle(device))

    def allow_shared_bytes(self, kernel: Any, size: int, device: int) -> None:
        """Let a kernel have more dynamic shared memory than the 48 KB that every kernel may use."""
        attribute = self.api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.call("cuKernelSetAttribute", attribute, size, kernel, self._handle(device))

    def current_device(self) -> int | None:
        """The device of this thread's context; None where no context is current."""
        status, device = self.api.cuCtxGetDevice()
        if status == _INVALID_CONTEXT:
            return None
        if status != 0:
            raise self.error("cuCtxGetDevice", status)
        return int(device)

    def is_capturing(self, stream: int) -> bool:
        """Whether launches on a stream are put into a graph, and not run."""
        return int(self.call("cuStreamIsCapturing", stream) or 0) != 0

    def make_current(self, device: int) -> None:
        """Make a device's primary context, which CUDA's runtime and torch use too, that of this thread."""
        self.call("cuCtxSetCurrent", self._context(device))

    @contextmanager
    def context_of(self, device: int) -> Iterator[None]:
        """Within it a context of that device is current: the thread's own, else the primary one."""
        if self.current_device() == device:
            yield
            return
        self.call("cuCtxPushCurrent", self._context(device))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    def _context(self, device: int) -> Any:
        """The primary context, which is kept until the process ends."""
        if device not in self._contexts:
            self._contexts[device] = self.call("cuDevicePrimaryCtxRetain", self._handle(device))
        return self._contexts[device]


def library_function(name: str) -> int:
    """The address of one of the driver's functions."""
    return ctypes.cast(getattr(ctypes.CDLL(LIBRARY), name), ctypes.c_void_p).value or 0


@cache
def has_library() -> bool:
    """Whether an NVIDIA driver is installed: found out without the package, in less than a millisecond."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True


@cache
def cuda_driver() -> CudaDriver:
    """The driver of this machine; raises LaunchError where there is none, or no package to call it with."""
    if not has_library():
        raise LaunchError(f"no NVIDIA driver was found ({LIBRARY}): kernels for CUDA compile here, but cannot run")
    try:
        from cuda.bindings import driver  # deferred: takes 80 ms, and comes with an extra
    except ImportError as error:
        raise LaunchError(f"running kernels on a GPU takes `pip install 'deuteron[cuda]'` ({error})") from error
    return CudaDriver(driver, is_library=True)


def num_devices() -> int:
    """How many GPUs kernels can run on; 0 without a driver or the package for it."""
    try:
        return cuda_driver().num_devices if has_library() else 0
    except LaunchError:
        return 0


def has_gpu() -> bool:
    """Whether there is a GPU for kernels to run on: in this process, or in the one that it was forked from after CUDA
    was initialised. There the driver takes no calls, and compiling goes on, as in the workers of torch.compile.
    """
    try:
        return has_library() and cuda_driver().num_devices > 0
    except DriverError as error:
        return error.status == _NOT_INITIALIZED
    except LaunchError:
        return False
