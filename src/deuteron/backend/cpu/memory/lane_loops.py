"""Gathers and scatters lane by lane, as functions of the module that are shared by all accesses of a type.

    define internal <16 x i16> @gather.v16i16(<16 x ptr> %pointers, <16 x i1> %mask)
    define internal void @scatter_strided.v16f32(<16 x float> %elements, ptr %base, i64 %step, <16 x i1> %mask)

That is an instruction for each lane, 16 at a time, where all are on; else of loads two more, and of stores a loop over
those that are. LLVM unrolls a masked gather of 16-bit elements into a branch for each lane wherever there is one; a
call keeps the code, and the time to compile it, small where lanes are seldom accessed one by one. Lanes that are chosen
at run time are in memory: LLVM stores a vector again for each that is taken of it, which took 5 ns for an element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.types import Value, byte_width, const, element, poison, vector, width, zero
from deuteron.backend.math.vectors import all_lanes

MAX_CHUNK = 16  # lanes with code of their own
_ATTRIBUTES = "noinline nounwind null_pointer_is_valid"  # as of the kernel: see lowering.py

AddressOf = Callable[[Value], Value]  # the address of a lane


def gather_lanes(b: Builder, pointers: Value, mask: Value, type: str) -> Value:
    """The elements that the pointers of the lanes that are on point to; 0 in the others."""
    result = vector(type, width(pointers.type))
    name = f"gather.{mangle(result)}"
    _define_gather(b, name, result, [pointers.type, mask.type], _in_memory)
    return b.call(result, name, pointers, mask)


def gather_strided(b: Builder, base: Value, step: Value, mask: Value, type: str) -> Value:
    """Those that are so many bytes apart."""

    def address_of(own: Builder, first: Value, apart: Value) -> AddressOf:
        return lambda lane: own.gep("i8", first, own.mul(lane, apart))

    result = vector(type, width(mask.type))
    name = f"gather_strided.{mangle(result)}"
    _define_gather(b, name, result, ["ptr", "i64", mask.type], address_of)
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
    count = as_word(b, b.intrinsic("llvm.ctpop", bits.type, bits))
    with b.loop(const("i64", 0), count, const("i64", 1), [bits], "on") as loop:
        (rest,) = loop.carried
        yield first_on(b, rest)
        loop.next(b.and_(rest, b.sub(rest, const(rest.type, 1))))


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


def _define_gather(
    outer: Builder, name: str, result: str, types: Sequence[str], addresses: Callable[..., AddressOf]
) -> None:
    """The function that gathers, unless there is one; that for some lanes is another one, which has more to save."""
    if outer.module.has_function(name):
        return
    some, (*places, mask) = lane_function(outer, f"{name}.some", result, types)
    some.ret(_gather_some(some, result, addresses(some, *places), mask))
    b, (*places, mask) = lane_function(outer, name, result, types)
    with b.if_(all_lanes(b, mask), "all_on") as branch:
        branch.yield_(_loaded(b, result, addresses(b, *places)))
        branch.otherwise()
        branch.yield_(b.call(result, f"{name}.some", *places, mask))
    b.ret(branch.results[0])


def _gather_some(b: Builder, result: str, address_of: AddressOf, mask: Value) -> Value:
    """Lanes that are off load what the first one that is on does: a loop over those that are would store them one by
    one, and wait until all can be read again as a vector.
    """
    bits = mask_bits(b, mask)
    with b.if_(b.icmp("ne", bits, const(bits.type, 0)), "some_on") as branch:
        first = address_of(first_on(b, bits))

        def address_of_on(lane: Value) -> Value:
            is_on = b.trunc(b.lshr(bits, b.zext(lane, bits.type)), "i1")
            return b.select(is_on, address_of(lane), first)

        branch.yield_(b.select(mask, _loaded(b, result, address_of_on), zero(result)))
        branch.otherwise()
        branch.yield_(zero(result))
    return branch.results[0]


def _loaded(b: Builder, result: str, address_of: AddressOf) -> Value:
    """The elements of all lanes, a chunk of them at a time."""
    type, lanes = element(result), width(result)
    num_bytes, place = byte_width(type), b.alloca(type, lanes)
    for start, size in _chunks(b, lanes):
        found = poison(vector(type, size))
        for lane in range(size):
            pointer = address_of(b.add(start, const("i64", lane)))
            found = b.insertelement(found, b.load(type, pointer, num_bytes), lane)
        b.store(found, b.gep(type, place, start), num_bytes)
    return b.load(result, place, num_bytes)


def _scatter(b: Builder, elements: Value, address_of: AddressOf, mask: Value) -> None:
    type, lanes = element(elements.type), width(mask.type)
    num_bytes, place = byte_width(type), put_in_memory(b, elements)
    with b.if_(all_lanes(b, mask), "all_on") as branch:
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
    """A bit for each lane, in a word or more."""
    lanes = width(mask.type)
    return b.zext(b.bitcast(mask, f"i{lanes}"), f"i{max(lanes, 64)}")


def first_on(b: Builder, bits: Value) -> Value:
    """The number of the first lane that is on, of which there is one."""
    return as_word(b, b.intrinsic("llvm.cttz", bits.type, bits, const("i1", True)))


def as_word(b: Builder, number: Value) -> Value:
    return b.trunc(number, "i64")
