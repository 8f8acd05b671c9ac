"""What `cuda.bindings.driver` is to launching, without a GPU: every call is recorded, and any can be made to fail.

api = FakeDriver(capabilities=(90, 80))
kernel = load_kernel(b"cubin", metadata, CudaDriver(api))
api.calls          [("cuInit", 0), ("cuDeviceGetCount",), ...]
api.fail["cuLibraryLoadData"] = Status.CUDA_ERROR_INVALID_IMAGE
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Any, NamedTuple


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Launch(NamedTuple):
    """One launch: `slots` are the first 8 bytes that each parameter's address points to."""

    function: int
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    stream: int
    slots: tuple[int, ...]
    context: str


class _Names:
    """An enum of the driver's, of which every member is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


class FakeDriver:
    """The functions are made on demand: `cuX(...)` is recorded and then handled by `_X` where there is one."""

    CUresult = Status
    CUdevice_attribute = CUfunction_attribute = _Names()
    CUfunction = CUstream = int

    def __init__(self, capabilities: tuple[int, ...] = (90,), num_params: int = 0):
        self.capabilities = capabilities
        self.num_params = num_params
        self.attributes = {"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448, "MAX_THREADS_PER_BLOCK": 1024}
        self.contexts: list[str] = []
        self.calls: list[tuple[Any, ...]] = []
        self.launches: list[Launch] = []
        self.fail: dict[str, Status] = {}

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*args: Any) -> tuple[Any, ...]:
            self.calls.append((name, *args))
            if name in self.fail:
                return (self.fail.pop(name), *[None] * (name != "cuLaunchKernel"))
            return getattr(self, f"_{name[2:]}", lambda *args: (Status.CUDA_SUCCESS,))(*args)

        return call

    def names(self) -> list[str]:
        """The names of the calls so far."""
        return [call[0] for call in self.calls]

    def _DeviceGetCount(self):
        return Status.CUDA_SUCCESS, len(self.capabilities)

    def _DeviceGet(self, device):
        return Status.CUDA_SUCCESS, device

    def _DeviceGetAttribute(self, attribute, device):
        name = attribute.removeprefix("CU_DEVICE_ATTRIBUTE_")
        capability = divmod(self.capabilities[device], 10)
        if name.startswith("COMPUTE_CAPABILITY"):
            return Status.CUDA_SUCCESS, capability[name.endswith("MINOR")]
        return Status.CUDA_SUCCESS, self.attributes[name]

    def _KernelGetAttribute(self, attribute, kernel, device):
        return Status.CUDA_SUCCESS, self.attributes[attribute.removeprefix("CU_FUNC_ATTRIBUTE_")]

    def _LibraryLoadData(self, *args):
        return Status.CUDA_SUCCESS, "library"

    def _LibraryGetKernel(self, library, symbol):
        return Status.CUDA_SUCCESS, 77

    def _CtxGetDevice(self):
        if not self.contexts:
            return Status.CUDA_ERROR_INVALID_CONTEXT, 0
        return Status.CUDA_SUCCESS, int(self.contexts[-1][-1])

    def _DevicePrimaryCtxRetain(self, device):
        return Status.CUDA_SUCCESS, f"primary{device}"

    def _CtxSetCurrent(self, context):
        self.contexts[-1:] = [context]
        return (Status.CUDA_SUCCESS,)

    def _CtxPushCurrent(self, context):
        self.contexts.append(context)
        return (Status.CUDA_SUCCESS,)

    def _CtxPopCurrent(self):
        return Status.CUDA_SUCCESS, self.contexts.pop()

    def _LaunchKernel(self, function, x, y, z, bx, by, bz, shared, stream, params, extra):
        if not self.contexts:
            return (Status.CUDA_ERROR_INVALID_CONTEXT,)
        addresses = (ctypes.c_uint64 * self.num_params).from_address(params)
        slots = tuple(ctypes.c_uint64.from_address(address).value for address in addresses)
        self.launches.append(Launch(function, (x, y, z), (bx, by, bz), shared, stream, slots, self.contexts[-1]))
        return (Status.CUDA_SUCCESS,)
