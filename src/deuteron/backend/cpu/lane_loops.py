"""Gathers and scatters lane by lane, as functions of the module that are shared by all accesses of a type.

    define internal <16 x i16> @gather.v16i16(<16 x ptr> %pointers, <16 x i1> %mask)

LLVM unrolls a masked gather of 16-bit elements into a branch for each lane wherever there is one; a call keeps the
code, and the time to compile it, small where lanes are seldom accessed one by one. `defined` are the names of the
functions that the module has already.
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, byte_width, const, vector, width, zero


def gather_lanes(b: Builder, defined: set[str], pointers: Value, mask: Value, type: str) -> Value:
    """The elements that the pointers of the lanes that are on point to; 0 in the others."""
    result = vector(type, width(pointers.type))
    name = f"gather.{mangle(result)}"
    if name not in defined:
        defined.add(name)
        _define_gather(b, name, result, type)
    return b.call(result, name, pointers, mask)


def scatter_lanes(b: Builder, defined: set[str], elements: Value, pointers: Value, mask: Value) -> None:
    """Store the elements of the lanes that are on, the first lane first."""
    name = f"scatter.{mangle(elements.type)}"
    if name not in defined:
        defined.add(name)
        _define_scatter(b, name, elements.type)
    b.call("void", name, elements, pointers, mask)


def _define_gather(outer: Builder, name: str, result: str, type: str) -> None:
    lanes = width(result)
    types = [(vector("ptr", lanes), "pointers"), (vector("i1", lanes), "mask")]
    b = outer.module.function(name, result, types, attributes="noinline nounwind")
    pointers, mask = _typed(b, types)
    bits = b.bitcast(mask, f"i{lanes}")
    with b.loop(const("i64", 0), const("i64", lanes), const("i64", 1), [zero(result)], "lane") as loop:
        with b.if_(_is_on(b, bits, loop.index), "on") as branch:
            element = b.load(type, b.extractelement(pointers, loop.index), byte_width(type))
            branch.yield_(b.insertelement(loop.carried[0], element, loop.index))
            branch.otherwise()
            branch.yield_(loop.carried[0])
        loop.next(branch.results[0])
    b.ret(loop.results[0])


def _define_scatter(outer: Builder, name: str, type: str) -> None:
    lanes = width(type)
    types = [(type, "elements"), (vector("ptr", lanes), "pointers"), (vector("i1", lanes), "mask")]
    b = outer.module.function(name, "void", types, attributes="noinline nounwind")
    elements, pointers, mask = _typed(b, types)
    bits = b.bitcast(mask, f"i{lanes}")
    with (
        b.loop(const("i64", 0), const("i64", lanes), const("i64", 1), hint="lane") as loop,
        b.if_(_is_on(b, bits, loop.index), "on"),
    ):
        b.store(b.extractelement(elements, loop.index), b.extractelement(pointers, loop.index))
    b.ret()


def _typed(b: Builder, types: list[tuple[str, str]]) -> list[Value]:
    """The parameters; the builder takes a type up to its first blank."""
    return [Value(type, value.text) for (type, _), value in zip(types, b.parameters, strict=True)]


def _is_on(b: Builder, bits: Value, lane: Value) -> Value:
    shift = b.trunc(lane, bits.type) if int(bits.type[1:]) < 64 else lane
    return b.trunc(b.lshr(bits, shift), "i1")
