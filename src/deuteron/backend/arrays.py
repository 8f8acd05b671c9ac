"""Arrays of any library as arguments of a kernel: element type, address, device.

    array_specialiser(type(x))(x)     ("*fp32:16", 140213...)     a float32 array at an address divisible by 16

NumPy and torch are met without being imported; others come through `__cuda_array_interface__`, `__array_interface__`,
`data_ptr()` or `__dlpack__`. A kernel gets the address of the first element and nothing else: strides are the kernel's
matter, and nothing keeps it from writing to an array that Python calls read-only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from deuteron.backend.dlpack import dlpack_tensor
from deuteron.errors import LaunchError

# Names of element types in NumPy (with ml_dtypes), torch (after its `torch.`) and of the language itself.
ELEMENT_TYPES = {
    "bool": "i1",
    "int1": "i1",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)},
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
    "fp16": "fp16",
    "bf16": "bf16",
    "fp32": "fp32",
    "fp64": "fp64",
    "fp8e4nv": "fp8e4nv",
    "fp8e5": "fp8e5",
}
CPU_DEVICES = (None, "cpu")

Specialised = tuple[str, int]

_ANY_LENGTH = ctypes.c_char * 0
_tokens_of_dtype: dict[Any, tuple[str, str]] = {}


class ForeignDevice(LaunchError):
    """An array is not in the memory of the device that the kernel runs on."""


def array_specialiser(type: type) -> Callable[[Any], Specialised] | None:
    """The function that specialises arrays of this Python type; None where it is not an array type."""
    if is_subclass_of(type, "numpy", "ndarray"):
        return _specialise_numpy
    for attribute, specialise in _PROTOCOLS:
        if hasattr(type, attribute):
            return specialise
    return None


def is_subclass_of(type: type, module: str, name: str) -> bool:
    """Whether a type is derived from a class of a module that may not be imported."""
    return any(base.__module__ == module and base.__name__ == name for base in type.__mro__)


def element_type(dtype: Any) -> str:
    """The signature type of a dtype object of any library: `fp32`, `bf16`, `i1` ...; raises LaunchError."""
    name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]
    if name not in ELEMENT_TYPES or getattr(dtype, "isnative", True) is False:
        known = "bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, float8_e4m3fn, float8_e5m2"
        raise LaunchError(f"arrays of {dtype} cannot be given to a kernel: the types are {known}, in native byte order")
    return ELEMENT_TYPES[name]


def _tokens(dtype: Any) -> tuple[str, str]:
    """The tokens of a pointer to that dtype: unaligned and aligned to 16 bytes."""
    if dtype not in _tokens_of_dtype:
        type = f"*{element_type(dtype)}"
        _tokens_of_dtype[dtype] = (type, f"{type}:16")
    return _tokens_of_dtype[dtype]


def _specialise_numpy(array: Any) -> Specialised:
    try:
        # A third of the time that `array.ctypes.data` takes, for the arrays that export a writable buffer.
        address = ctypes.addressof(_ANY_LENGTH.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        address = array.ctypes.data
    return (_tokens_of_dtype.get(array.dtype) or _tokens(array.dtype))[address & 15 == 0], address


def _specialise_torch(tensor: Any) -> Specialised:
    device = getattr(getattr(tensor, "device", None), "type", None)
    if device not in CPU_DEVICES:
        raise ForeignDevice(f"it is on device '{device}'")
    address = tensor.data_ptr()
    return (_tokens_of_dtype.get(tensor.dtype) or _tokens(tensor.dtype))[address & 15 == 0], address


def _specialise_cuda_interface(array: Any) -> Specialised:
    """JAX's class has the attribute for every device, its arrays only on a GPU."""
    if hasattr(array, "__cuda_array_interface__"):
        raise ForeignDevice("it is on a CUDA device")
    if hasattr(array, "__dlpack__"):
        return _specialise_dlpack(array)
    return _specialise_interface(array)


def _specialise_interface(array: Any) -> Specialised:
    import numpy  # deferred: start-up time; whoever has such an array mostly has NumPy

    interface = array.__array_interface__
    address = interface["data"][0]
    return _tokens(getattr(array, "dtype", None) or numpy.dtype(interface["typestr"]))[address & 15 == 0], address


def _specialise_dlpack(array: Any) -> Specialised:
    tensor = dlpack_tensor(array)
    if tensor.device != "cpu":
        raise ForeignDevice(f"it is on device '{tensor.device}'")
    return _tokens(tensor.dtype)[tensor.address & 15 == 0], tensor.address


_PROTOCOLS = (
    ("data_ptr", _specialise_torch),
    ("__cuda_array_interface__", _specialise_cuda_interface),
    ("__array_interface__", _specialise_interface),
    ("__dlpack__", _specialise_dlpack),
)
