"""Values of tile IR as NumPy arrays (of shape () for scalars).

    i1 -> bool    i8 ... i64 -> int8 ... int64    f16 f32 f64 -> the same    bf16, fp8 -> float32, rounded after each op
    pointers -> int64, byte addresses

Integers wrap. An i1 is 0 or 1 where an op takes it as unsigned, 0 or -1 where it takes it as signed.
In memory, and as the source of a bitcast, a value has its storage dtype: an i1 takes one byte, bf16 the upper half of
its float32.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute

from deuteron.interpreter.numerics.formats import FORMATS, round_to_bf16
from deuteron.ir.types import FLOAT_TYPES, PointerType, bf16, element_type_of, f16, f32, f64

_INTEGER_DTYPES = {1: np.dtype(bool), **{bits: np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)}}
_NATIVE = {f16: np.dtype(np.float16), f32: np.dtype(np.float32), f64: np.dtype(np.float64)}
_FLOAT_DTYPES = {type: _NATIVE.get(type, np.dtype(np.float32)) for type in FLOAT_TYPES}
_STORAGE_DTYPES = {
    type: np.dtype(f"uint{declared.bits}") for type, declared in FLOAT_TYPES.items() if type not in _NATIVE
}


def dtype_of(type: Attribute) -> np.dtype:
    """The dtype of a value of this type, or of the elements of this tile type."""
    element = element_type_of(type)
    if isinstance(element, IntegerType):
        return _INTEGER_DTYPES[element.width.data]
    if isinstance(element, PointerType):
        return _INTEGER_DTYPES[64]
    return _FLOAT_DTYPES[element]


def storage_dtype_of(type: Attribute) -> np.dtype:
    """The dtype of the elements in memory."""
    dtype = _STORAGE_DTYPES.get(element_type_of(type)) or dtype_of(type)
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype


def to_storage(value: np.ndarray, type: Attribute) -> np.ndarray:
    """A value as it lies in memory."""
    element = element_type_of(type)
    if element == bf16:
        return (np.asarray(value).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    if element in _STORAGE_DTYPES:
        return FORMATS[element].encode(value)
    return np.asarray(value, storage_dtype_of(element))


def from_storage(stored: np.ndarray, type: Attribute) -> np.ndarray:
    """The value of what lies in memory; any byte but 0 is a true i1."""
    element = element_type_of(type)
    if element == bf16:
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if element in _STORAGE_DTYPES:
        return FORMATS[element].decoded[stored]
    return stored.astype(bool) if dtype_of(element).kind == "b" else stored


def value_of(number: bool | int | float, type: Attribute) -> np.ndarray:
    """A number as a value of a scalar type: wrapped, or rounded once."""
    element, dtype = element_type_of(type), dtype_of(type)
    if element in _FLOAT_DTYPES:
        return round_float(np.float64(number), element)
    if dtype.kind == "b":
        return np.bool_(int(number) & 1)
    bits = 8 * dtype.itemsize
    return np.array(int(number) & ((1 << bits) - 1), f"uint{bits}").view(dtype)[()]


def round_float(value: np.ndarray, type: Attribute) -> np.ndarray:
    """A float32 or float64 result rounded once, to nearest even, to the float type of the op."""
    element = element_type_of(type)
    if element == bf16:
        return round_to_bf16(value)
    if element in _STORAGE_DTYPES:
        return FORMATS[element].round(value).astype(np.float32)
    return value.astype(_FLOAT_DTYPES[element], copy=False)


def as_signed(value: np.ndarray) -> np.ndarray:
    """An integer as a signed one; a true i1 is -1."""
    return -value.astype(np.int8) if value.dtype.kind == "b" else value


def as_unsigned(value: np.ndarray) -> np.ndarray:
    """The same bits as an unsigned integer."""
    if value.dtype.kind == "b":
        return value.astype(np.uint8)
    return value.view(_UNSIGNED[value.dtype])


_UNSIGNED = {np.dtype(f"int{bits}"): np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)}


def as_dtype(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The low bits of an integer, as an integer of that dtype."""
    return (value & value.dtype.type(1)).astype(bool) if dtype.kind == "b" else value.astype(dtype, copy=False)
