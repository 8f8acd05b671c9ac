"""Between the elements in registers and in the user's memory, and rounding to narrow floating types.

f16:  memory i16  -> register float  -> memory i16
i1:   memory i8 (not 0 is true)  -> register i1  -> memory i8 (0 or 1)
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute

from deuteron.backend.cpu.math.bf16 import round_to_bf16
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, like, zero
from deuteron.backend.math.conversions import (
    bf16_to_f32,
    f16_to_f32,
    f32_to_bf16,
    f32_to_f16,
    is_part_of_half,
    narrow,
    widen,
    widen_through_half,
)
from deuteron.dtypes import FloatType
from deuteron.ir.types import FLOAT_TYPES, bf16, f16, i1, is_narrow_float
from deuteron.machine.cpu import CPU

# Conversions saturate; what is stored is rounded already, and an infinity that came from memory goes back as it is.
_STORED = {type: declared.as_stored for type, declared in FLOAT_TYPES.items()}


def from_memory(b: Builder, bits: Value, element_type: Attribute, target: CPU) -> Value:
    """Elements as they are computed with."""
    if element_type == i1:
        return b.icmp("ne", bits, zero(bits.type))
    if element_type == f16:
        return f16_to_f32(b, bits, target.converts_half)
    if element_type == bf16:
        return bf16_to_f32(b, bits)
    if is_narrow_float(element_type):
        return _widened(b, bits, FLOAT_TYPES[element_type], target)
    return bits


def _widened(b: Builder, bits: Value, format: FloatType, target: CPU) -> Value:
    through_half = target.converts_half and is_part_of_half(format)
    return (widen_through_half if through_half else widen)(b, bits, format)


def to_memory(
    b: Builder,
    x: Value,
    element_type: Attribute,
    target: CPU,
    toward_zero: bool = False,
    formats: Mapping[Attribute, FloatType] = _STORED,
) -> Value:
    """Elements as they lie in memory; narrow floats are rounded."""
    if element_type == i1:
        return b.zext(x, like(x.type, "i8"))
    if element_type == f16:
        return f32_to_f16(b, x, target.converts_half, toward_zero)
    if element_type == bf16:
        return f32_to_bf16(b, x, toward_zero=True) if toward_zero else round_to_bf16(b, x, target)
    if is_narrow_float(element_type):
        return narrow(b, x, formats[element_type], toward_zero)
    return x


def stored(b: Builder, x: Value, element_type: Attribute, target: CPU) -> Value:
    """Elements in registers, which hold numbers of the type, as they lie in memory."""
    return upper_half(b, x) if element_type == bf16 else to_memory(b, x, element_type, target)


def upper_half(b: Builder, x: Value) -> Value:
    """The bits of bf16, of a float that holds one."""
    bits = b.bitcast(x, like(x.type, "i32"))
    return b.trunc(b.lshr(bits, const(bits.type, 16)), like(bits.type, "i16"))


def rounded(
    b: Builder, x: Value, element_type: Attribute, target: CPU, toward_zero: bool = False, flushes: bool = False
) -> Value:
    """A float register that holds a number of the type; of bf16 that `flushes`, a subnormal one may be 0."""
    if not is_narrow_float(element_type):
        return x
    if element_type == bf16 and flushes and not toward_zero:
        return bf16_to_f32(b, round_to_bf16(b, x, target, flushes))
    return from_memory(b, to_memory(b, x, element_type, target, toward_zero, FLOAT_TYPES), element_type, target)
