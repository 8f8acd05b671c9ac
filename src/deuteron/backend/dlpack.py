"""What a DLPack capsule says: device, element type, address, shape and strides.

    dlpack_tensor(x)     Tensor("cpu", 0, dtype="bfloat16", address=0x7f..., shape=(4, 8), strides=(8, 1), ...)

Read with ctypes after dlpack.h (https://dmlc.github.io/dlpack/latest/c_api.html), since `numpy.from_dlpack` knows
neither bfloat16 nor float8. The capsule is not consumed: the array itself keeps its memory.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

from deuteron.dtypes import FLOATS
from deuteron.errors import LaunchError

_READ_ONLY = 1  # a flag of a versioned capsule
DEVICES = {1: "cpu", 2: "cuda", 3: "cpu", 10: "rocm", 13: "cuda"}
_KINDS_OF_ONE_WIDTH = {
    6: "bool",
    **{type.dlpack_code: type.array_name for type in FLOATS if type.dlpack_code is not None},
}
KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", **_KINDS_OF_ONE_WIDTH}


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """What is before the tensor in a capsule of DLPack 1.0 and later."""

    _fields_ = [
        ("major", c_uint32),
        ("minor", c_uint32),
        ("manager_context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", _DLTensor),
    ]


class Tensor(NamedTuple):
    """An array elsewhere; strides are in elements, `element_size` in bytes."""

    device: str
    device_index: int
    dtype: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_size: int
    is_read_only: bool = False


_get_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


_is_named = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_VERSIONED_NAME = b"dltensor_versioned"


def dlpack_tensor(array: Any) -> Tensor:
    """The description of an array that has `__dlpack__`; raises LaunchError where it cannot be exported."""
    kind, index = array.__dlpack_device__()
    device = DEVICES.get(int(kind), f"of DLPack's kind {int(kind)}")
    if device not in ("cpu", "cuda"):
        return Tensor(device, int(index), "", 0, (), (), 0)
    capsule = _capsule(array)
    is_read_only = False
    if _is_named(capsule, _VERSIONED_NAME):
        versioned = _Versioned.from_address(_get_pointer(capsule, _VERSIONED_NAME))
        managed, is_read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    else:
        managed = _DLTensor.from_address(_get_pointer(capsule, b"dltensor"))
    shape = tuple(managed.shape[: managed.ndim])
    strides = tuple(managed.strides[: managed.ndim]) if managed.strides else _row_major(shape)
    address = (managed.data or 0) + managed.byte_offset
    described = (_dtype_name(managed), address, shape, strides, managed.bits // 8)
    return Tensor(device, int(index), *described, is_read_only)


def _capsule(array: Any) -> Any:
    """A versioned capsule, which alone can say that memory is read-only, where the array makes one."""
    try:
        try:
            return array.__dlpack__(max_version=(1, 0))
        except TypeError:  # made before DLPack 1.0
            return array.__dlpack__()
    except (BufferError, RuntimeError, TypeError) as error:
        raise LaunchError(f"its memory cannot be shared: {error}") from error


def _dtype_name(tensor: _DLTensor) -> str:
    kind = KINDS.get(tensor.code, f"DLPack type {tensor.code} of ")
    name = kind if tensor.code in _KINDS_OF_ONE_WIDTH else f"{kind}{tensor.bits}"
    return name if tensor.lanes == 1 else f"{name} x {tensor.lanes}"


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, size = [], 1
    for extent in reversed(shape):
        strides.append(size)
        size *= extent
    return tuple(reversed(strides))
