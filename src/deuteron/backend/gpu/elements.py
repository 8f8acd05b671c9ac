"""How elements are held: in registers, and in memory or on their way between threads (as bits).

          register            bits
f16       half                i16
bf16      bfloat              i16
f8        i8                  i8
i1        i1                  i8       0 or 1; any byte but 0 is true
pointer   ptr addrspace(1)    i64
others    as they are         an integer of that width
"""

from __future__ import annotations

from xdsl.ir import Attribute

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, bits_of, const
from deuteron.ir.types import (
    PointerType,
    bf16,
    bit_width_of,
    byte_width_of,
    element_type_of,
    f16,
    f32,
    f64,
    i1,
)

GLOBAL, SHARED = "ptr addrspace(1)", "ptr addrspace(3)"
# By the class: floats all have one hash, so that a look-up compares many of them.
_FLOATS = {f16.__class__: "half", bf16.__class__: "bfloat", f32.__class__: "float", f64.__class__: "double"}


def register_type(type: Attribute) -> str:
    """The LLVM type that an element is held in."""
    element = element_type_of(type)
    if isinstance(element, PointerType):
        return GLOBAL
    return _FLOATS.get(element.__class__) or f"i{bit_width_of(element)}"


def bits_type(type: Attribute) -> str:
    """The integer type of an element's bits."""
    return f"i{8 * byte_width_of(type)}"


def to_bits(b: Builder, value: Value, type: Attribute) -> Value:
    """The bits of an element."""
    element = element_type_of(type)
    if element == i1:
        return b.zext(value, "i8")
    if isinstance(element, PointerType):
        return b.ptrtoint(value)
    bits = bits_of(value)
    return b.bitcast(value, bits_type(element)) if bits is None else const(bits_type(element), bits)


def from_bits(b: Builder, bits: Value, type: Attribute) -> Value:
    """The element with these bits."""
    element = element_type_of(type)
    if element == i1:
        return b.icmp("ne", bits, const("i8", 0))
    if isinstance(element, PointerType):
        return b.inttoptr(bits, GLOBAL)
    return b.bitcast(bits, register_type(element))
