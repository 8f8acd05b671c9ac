"""Values, types and constants of LLVM IR as text.

    x = Value("<8 x float>", "%x")
    element(x.type), width(x.type)      "float", 8
    vector("float", 8)                  "<8 x float>"; a vector of width 1 is the scalar type
    const("float", 0.1)                 Value("float", "0x3FB99999A0000000"): the nearest float, exactly
    const("<8 x i32>", -1)              Value("<8 x i32>", "splat (i32 -1)")
    vector_const("i32", [0, 1, 2, 3])   Value("<4 x i32>", "<i32 0, i32 1, i32 2, i32 3>")

Floating types are half, bfloat, float and double; integers iN; pointers ptr, or ptr addrspace(1) and (3) for global and
shared memory on a GPU. fp8 types are i8 in LLVM IR.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from deuteron.dtypes import as_signed


class Value(NamedTuple):
    """An operand: its type and how it is written. Local values start with `%`, globals with `@`."""

    type: str
    text: str

    @property
    def is_constant(self) -> bool:
        return self.text[0] not in "%@"

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


def vector(element_type: str, count: int) -> str:
    """The type of `count` elements; of one element it is the scalar type."""
    return f"<{count} x {element_type}>" if count > 1 else element_type


@cache
def element(type: str) -> str:
    return type[1:-1].split(" x ", 1)[1] if type.startswith("<") else type


@cache
def width(type: str) -> int:
    return int(type[1:-1].split(" x ", 1)[0]) if type.startswith("<") else 1


def like(type: str, element_type: str) -> str:
    """The type as wide as `type` whose elements are `element_type`."""
    return vector(element_type, width(type))


FLOAT_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


def is_float(type: str) -> bool:
    return element(type) in FLOAT_BITS


@cache
def bit_width(type: str) -> int:
    """Bits of one element; pointers have 64, those to shared memory (address space 3) 32."""
    scalar = element(type)
    if scalar.startswith("ptr"):
        return 32 if scalar == "ptr addrspace(3)" else 64
    return FLOAT_BITS.get(scalar) or int(scalar[1:])


def byte_width(type: str) -> int:
    """Bytes that one element takes in memory; an i1 takes one."""
    return max(bit_width(type) // 8, 1)


def const(type: str, number: float | int | bool) -> Value:
    """A constant; a vector type gets the number in every element."""
    if type.startswith("<"):
        scalar = element(type)
        return Value(type, f"splat ({scalar} {_number_text(scalar, number)})")
    return Value(type, _number_text(type, number))


def integer_of(value: Value) -> int | None:
    """The number that a scalar integer constant is, as it is written: of i8, -128 to 127."""
    text = value.text
    return int(text) if text[0] in "-0123456789" and value.type[0] == "i" else None


def bits_of(value: Value) -> int | None:
    """The bits of a scalar floating constant; None of a NaN, whose payload is LLVM's, and of what is computed."""
    if not value.is_constant or not value.text.startswith("0x"):
        return None
    if value.type in ("half", "bfloat"):
        return int(value.text[3:], 16)
    bits = int(value.text, 16)
    (number,) = struct.unpack("<d", struct.pack("<Q", bits))
    if number != number:
        return None
    return bits if value.type == "double" else ctypes.c_uint32.from_buffer(ctypes.c_float(number)).value


def vector_const(element_type: str, numbers: Sequence[float | int | bool]) -> Value:
    """A constant vector; of one number it is a scalar constant."""
    if len(numbers) == 1:
        return const(element_type, numbers[0])
    return Value(vector(element_type, len(numbers)), f"<{_elements_text(element_type, numbers)}>")


def array_const(element_type: str, numbers: Sequence[float | int | bool]) -> Value:
    """A constant array, for a table in memory."""
    return Value(f"[{len(numbers)} x {element_type}]", f"[{_elements_text(element_type, numbers)}]")


def zero(type: str) -> Value:
    return Value(type, "zeroinitializer") if type.startswith("<") else const(type, 0)


def poison(type: str) -> Value:
    return Value(type, "poison")


def _elements_text(type: str, numbers: Sequence[float | int | bool]) -> str:
    return ", ".join(f"{type} {_number_text(type, number)}" for number in numbers)


def _number_text(type: str, number: float | int | bool) -> str:
    if type in FLOAT_BITS:
        return _float_text(type, float(number))
    if type == "i1":
        return "true" if number else "false"
    if type.startswith("ptr"):
        return "null" if number == 0 else f"inttoptr (i64 {int(number)} to {type})"
    return str(as_signed(int(number), int(type[1:])))


def _float_text(type: str, number: float) -> str:
    """The hex that LLVM reads: of float the bits of the equal double, of half and bfloat their own bits."""
    if type == "half":
        return f"0xH{_half_bits(number):04X}"
    if type == "bfloat":
        return f"0xR{_bfloat_bits(number):04X}"
    if type == "float":
        number = ctypes.c_float(number).value
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _half_bits(number: float) -> int:
    try:
        return struct.unpack("<H", struct.pack("<e", number))[0]
    except OverflowError:
        return 0xFC00 if number < 0 else 0x7C00


def _bfloat_bits(number: float) -> int:
    """Round to nearest even; a NaN stays one."""
    bits = ctypes.c_uint32.from_buffer(ctypes.c_float(number)).value
    if number != number:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
