"""Loads and stores of lanes whose elements follow one another; where some may be off, masked ones, a register of them
at a time, if any of its lanes is on, or lane by lane. Loads, too, of those that lie in two such runs, as columns that
wrap around do.

Processors fetch ahead what loads without a mask read one after the other: on a Zen 5 masked loads alone read memory
at 35 GB/s, others at 60. So loads have no mask where all lanes are on, which is tested. Stores are masked where that
takes no more instructions.
"""

from __future__ import annotations

from deuteron.backend.cpu.context import Runs
from deuteron.backend.cpu.fragment import Fragment, Uniform
from deuteron.backend.cpu.memory.by_lanes import consecutive, gather, scatter
from deuteron.backend.cpu.memory.element_access import Access
from deuteron.backend.cpu.memory.masks import is_full, is_tested_by_lanes, mask_vector
from deuteron.backend.cpu.memory.streaming import can_stream, store_streaming
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, vector, vector_const, width, zero
from deuteron.backend.math.vectors import any_lane, concatenated


def load_neighbours(access: Access, first: Value, mask: Fragment | None) -> Value:
    type, b = vector(access.type, access.lanes), access.b

    def load_all() -> Value:
        return b.load(type, first, access.num_bytes)

    if mask is None:
        return load_all()
    if not isinstance(mask, Uniform) and access.has_free_masks and access.is_far_apart:
        return b.masked_load(type, first, access.num_bytes, mask.value)
    with b.if_(is_full(b, mask), "all_on") as branch:
        branch.yield_(load_all())
        branch.otherwise()
        branch.yield_(zero(type) if isinstance(mask, Uniform) else _load_some(access, first, mask.value))
    return branch.results[0]


def _load_some(access: Access, first: Value, mask: Value) -> Value:
    if not access.has_masked_moves:
        return gather(access, consecutive(access, first), mask)
    b = access.b
    return concatenated(b, [_load_unless_empty(b, at, on, access.type) for at, on in _registers(access, first, mask)])


def _load_unless_empty(b: Builder, first: Value, mask: Value, element_type: str) -> Value:
    """What a masked load reads where all lanes are off is waited for, though nothing comes of it."""
    type = vector(element_type, width(mask.type))
    with b.if_(any_lane(b, mask), "some_on") as branch:
        branch.yield_(b.masked_load(type, first, byte_width(element_type), mask))
        branch.otherwise()
        branch.yield_(zero(type))
    return branch.results[0]


def load_runs(access: Access, first: Value, runs: Runs, mask: Fragment | None) -> Value:
    """Of lanes of which the first one is there, and no more than `runs.count` follow before the others; none of them
    where that is not positive.
    """
    b, lanes, type = access.b, access.lanes, vector(access.type, access.lanes)
    others = b.umin(b.sub(runs.count, const("i32", 1)), const("i32", lanes - 1))
    are_first = b.icmp("ule", vector_const("i8", range(lanes)), b.splat(b.trunc(others, "i8"), lanes))
    on = mask_vector(access, mask)
    found = b.masked_load(type, first, access.num_bytes, b.and_(on, are_first))
    are_second = b.and_(on, b.xor(are_first, const(on.type, True)))
    return b.masked_load(type, b.gep("i8", first, runs.jump), access.num_bytes, are_second, found)


def store_neighbours(
    access: Access, elements: Value, first: Value, mask: Fragment | None, streams: Value | None
) -> None:
    b = access.b
    is_streamed = streams is not None and can_stream(elements)

    def store_all() -> None:
        if is_streamed:
            store_streaming(b, elements, first, access.num_bytes, streams)
        else:
            b.store(elements, first, access.num_bytes)

    if mask is None:
        store_all()
        return
    if access.has_free_masks and is_tested_by_lanes(mask) and not is_streamed:
        b.masked_store(elements, first, access.num_bytes, mask.value)
        return
    with b.if_(is_full(b, mask), "all_on") as branch:
        store_all()
        branch.otherwise()
        if not isinstance(mask, Uniform):
            _store_some(access, elements, first, mask.value)


def _store_some(access: Access, elements: Value, first: Value, mask: Value) -> None:
    if not access.has_masked_moves:
        scatter(access, elements, consecutive(access, first), mask)
        return
    b = access.b
    for (at, on), (_, part) in zip(_registers(access, first, mask), _registers(access, first, elements), strict=True):
        with b.if_(any_lane(b, on), "some_on"):
            b.masked_store(part, at, access.num_bytes, on)


def _registers(access: Access, first: Value, lanes: Value) -> list[tuple[Value, Value]]:
    """The lanes of a vector register by register, and the addresses of those from one on."""
    b, count = access.b, access.ctx.target.vector_width(8 * access.num_bytes)
    if access.lanes <= count:
        return [(first, lanes)]
    return [
        (
            b.gep("i8", first, const("i64", start * access.num_bytes)) if start else first,
            b.shufflevector(lanes, None, range(start, start + count)),
        )
        for start in range(0, access.lanes, count)
    ]
