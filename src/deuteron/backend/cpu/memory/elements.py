"""How elements are held: in registers, in the scratch memory, and in the user's memory.

              register   scratch   user's memory
    f16       float      float     i16                rounded to f16 after every op
    bf16      float      float     i16
    f8        float      float     i8
    i1        i1         i8        i8
    others    as they are

A float register of an f16 holds a number that f16 has, so that widening is free and scratch memory can be read by a
float matrix product directly.
"""

from __future__ import annotations

from xdsl.ir import Attribute

from deuteron.ir.types import PointerType, bit_width_of, element_type_of, is_float, is_narrow_float


def register_type(type: Attribute) -> str:
    """The LLVM type that an element is computed in."""
    element = element_type_of(type)
    if isinstance(element, PointerType):
        return "ptr"
    if is_float(element):
        return "double" if bit_width_of(element) == 64 else "float"
    return f"i{bit_width_of(element)}"


def memory_type(type: Attribute) -> str:
    """The LLVM type of an element in the user's memory."""
    element = element_type_of(type)
    if is_narrow_float(element):
        return f"i{bit_width_of(element)}"
    return scratch_type(element)


def scratch_type(type: Attribute) -> str:
    """The LLVM type of an element in the scratch memory."""
    register = register_type(type)
    return "i8" if register == "i1" else register
