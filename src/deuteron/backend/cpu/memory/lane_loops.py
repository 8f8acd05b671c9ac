"""Gathers and scatters lane by lane, as functions of the module that are shared by all accesses of a type.

    define internal <16 x i16> @gather.v16i16(<16 x ptr> %pointers, <16 x i1> %mask)
    define internal void @scatter_strided.v16f32(<16 x float> %elements, ptr %base, i64 %step, <16 x i1> %mask)

Where all lanes are on that is an instruction for each, 16 at a time; else a loop over those that are. LLVM unrolls a
masked gather of 16-bit elements into a branch for each lane wherever there is one; a call keeps the code, and the time
to compile it, small where lanes are seldom accessed one by one. Lanes that are chosen at run time are in memory: LLVM
stores a vector again for each that is taken of it, which took 5 ns for an element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, byte_width, const, element, poison, vector, width, zero

MAX_CHUNK = 16  # lanes with code of their own
_ATTRIBUTES = "noinline nounwind null_pointer_is_valid"  # as of the kernel: see lowering.py

AddressOf = Callable[[Value], Value]  # the address of a lane


def gather_lanes(b: Builder, pointers: Value, mask: Value, type: str) -> Value:
    """The elements that the pointers of the lanes that are on point to; 0 in the others."""
    name = f"gather.{mangle(vector(type, width(pointers.type)))}"
    if not b.module.has_function(name):
        own, (given, on) = lane_function(b, name, vector(type, width(pointers.type)), [pointers.type, mask.type])
        _gather(own, type, _in_memory(own, given), on)
    return b.call(vector(type, width(pointers.type)), name, pointers, mask)


def gather_strided(b: Builder, base: Value, step: Value, mask: Value, type: str) -> Value:
    """Those that are so many bytes apart."""
    result = vector(type, width(mask.type))
    name = f"gather_strided.{mangle(result)}"
    if not b.module.has_function(name):
        own, (first, apart, on) = lane_function(b, name, result, ["ptr", "i64", mask.type])
        _gather(own, type, lambda lane: own.gep("i8", first, own.mul(lane, apart)), on)
    return b.call(result, name, base, step, mask)


def scatter_lanes(b: Builder, elements: Value, pointers: Value, mask: Value) -> None:
    """Store the elements of the lanes that are on, the first lane first."""
    name = f"scatter.{mangle(elements.type)}"
    if not b.module.has_function(name):
        own, (given, places, on) = lane_function(b, name, "void", [elements.type, pointers.type, mask.type])
        _scatter(own, given, _in_memory(own, places), on)
    b.call("void", name, elements, pointers, mask)


def scatter_strided(b: Builder, elements: Value, base: Value, step: Value, mask: Value) -> None:
    """Store them so many bytes apart."""
    name = f"scatter_strided.{mangle(elements.type)}"
    if not b.module.has_function(name):
        own, (given, first, apart, on) = lane_function(b, name, "void", [elements.type, "ptr", "i64", mask.type])
        _scatter(own, given, lambda lane: own.gep("i8", first, own.mul(lane, apart)), on)
    b.call("void", name, elements, base, step, mask)


@contextmanager
def lanes_on(b: Builder, mask: Value) -> Iterator[Value]:
    """A loop over the numbers of the lanes that are on, the first one first."""
    bits = mask_bits(b, mask)
    count = b.intrinsic("llvm.ctpop", "i64", bits)
    with b.loop(const("i64", 0), count, const("i64", 1), [bits], "on") as loop:
        (rest,) = loop.carried
        yield b.intrinsic("llvm.cttz", "i64", rest, const("i1", True))
        loop.next(b.and_(rest, b.sub(rest, const("i64", 1))))


def put_in_memory(b: Builder, lanes: Value) -> Value:
    """The address, on the stack, of what is in the lanes of a vector."""
    place = b.alloca(element(lanes.type), width(lanes.type))
    b.store(lanes, place, byte_width(element(lanes.type)))
    return place


def lane_function(outer: Builder, name: str, result: str, types: Sequence[str]) -> tuple[Builder, list[Value]]:
    """A function, and its parameters; the builder takes a type up to its first blank."""
    b = outer.module.function(name, result, [(type, f"x{n}") for n, type in enumerate(types)], attributes=_ATTRIBUTES)
    return b, [Value(type, value.text) for type, value in zip(types, b.parameters, strict=True)]


def _in_memory(b: Builder, pointers: Value) -> AddressOf:
    place = put_in_memory(b, pointers)
    return lambda lane: b.load("ptr", b.gep("ptr", place, lane))


def _gather(b: Builder, type: str, address_of: AddressOf, mask: Value) -> None:
    lanes, num_bytes = width(mask.type), byte_width(type)
    place = put_in_memory(b, zero(vector(type, lanes)))
    with b.if_(_are_all_on(b, mask), "all_on") as branch:
        for start, size in _chunks(b, lanes):
            found = poison(vector(type, size))
            for lane in range(size):
                pointer = address_of(b.add(start, const("i64", lane)))
                found = b.insertelement(found, b.load(type, pointer, num_bytes), lane)
            b.store(found, b.gep(type, place, start), num_bytes)
        branch.otherwise()
        with lanes_on(b, mask) as lane:
            b.store(b.load(type, address_of(lane), num_bytes), b.gep(type, place, lane), num_bytes)
    b.ret(b.load(vector(type, lanes), place, num_bytes))


def _scatter(b: Builder, elements: Value, address_of: AddressOf, mask: Value) -> None:
    type, lanes = element(elements.type), width(mask.type)
    num_bytes, place = byte_width(type), put_in_memory(b, elements)
    with b.if_(_are_all_on(b, mask), "all_on") as branch:
        for start, size in _chunks(b, lanes):
            chunk = b.load(vector(type, size), b.gep(type, place, start), num_bytes)
            for lane in range(size):
                pointer = address_of(b.add(start, const("i64", lane)))
                b.store(b.extractelement(chunk, lane), pointer, num_bytes)
        branch.otherwise()
        with lanes_on(b, mask) as lane:
            b.store(b.load(type, b.gep(type, place, lane), num_bytes), address_of(lane), num_bytes)
    b.ret()


def _chunks(b: Builder, lanes: int) -> Iterator[tuple[Value, int]]:
    """The first lane of each chunk of so many, in a loop where there are several."""
    size = min(lanes, MAX_CHUNK)
    if size == lanes:
        yield const("i64", 0), size
        return
    with b.loop(const("i64", 0), const("i64", lanes), const("i64", size), hint="chunk") as loop:
        yield loop.index, size


def mask_bits(b: Builder, mask: Value) -> Value:
    lanes = width(mask.type)
    bits = b.bitcast(mask, f"i{lanes}")
    return bits if lanes == 64 else b.zext(bits, "i64")


def _are_all_on(b: Builder, mask: Value) -> Value:
    return b.intrinsic("llvm.vector.reduce.and", "i1", mask, overloads=[mask.type])
