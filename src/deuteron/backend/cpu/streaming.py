"""Stores that bypass the caches, in launches which write more than the last cache holds.

    streams = programs * num_bytes >= cache and out != x        once for a launch
    if streams and address % 16 == 0:   store !nontemporal      for each vector
    else:                               store
    if streams: fence                                           after the programs: whoever is told that they have run
                                                                sees what they wrote
A store otherwise reads the line that it writes into, which more than doubles what an addition of two large arrays takes
of the memory for its result. What fits the cache is better there: stores that bypass it take twice as long, and four
times as long where the line has been read (`x += 1`), even by way of another argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from xdsl.ir import SSAValue

from deuteron.backend.cpu.plan.streams import Streams
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, element, width

# What LLVM needs to be known of an address on x86-64; vectors are stored in parts of so many bytes then, which takes
# no longer than whole ones.
_ALIGNMENT = 16


def launch_streams(
    b: Builder, streams: Streams, cache_bytes: int, arguments: Mapping[SSAValue, Value], sizes: Sequence[Value]
) -> Value:
    """Whether a launch over a grid of these sizes stores past the caches."""
    if not streams.stores:
        return const("i1", False)
    x, y, z = (b.zext(size, "i64") for size in sizes)
    enough = const("i64", -(-cache_bytes // streams.num_bytes))
    condition = b.icmp("uge", b.mul(b.mul(x, y), z), enough)
    pairs = product(streams.written, streams.read)
    for written, read in sorted(pairs, key=lambda pair: [argument.index for argument in pair]):
        condition = b.and_(condition, b.icmp("ne", arguments[written], arguments[read]))
    return condition


def fence_streams(b: Builder, streams: Value) -> None:
    """After the programs: what they stored comes before whatever this thread does next."""
    if streams.is_constant:
        return
    with b.if_(streams, "streamed"):
        b.fence("seq_cst")


def can_stream(elements: Value) -> bool:
    """Whether a vector is as large as two parts."""
    return width(elements.type) * byte_width(element(elements.type)) >= 2 * _ALIGNMENT


def store_streaming(b: Builder, elements: Value, first: Value, align: int, streams: Value) -> None:
    """Store a vector, past the caches where the launch does and the address is aligned.

    It is stored as two halves there: LLVM would make one store that may not bypass the caches of two equal ones.
    """
    offset = b.and_(b.ptrtoint(first, "i64"), const("i64", _ALIGNMENT - 1))
    with b.if_(b.and_(streams, b.icmp("eq", offset, const("i64", 0))), "stream") as branch:
        half = width(elements.type) // 2
        hint = f"!nontemporal {b.module.metadata('!{i32 1}')}"
        for begin in (0, half):
            part = b.shufflevector(elements, None, range(begin, begin + half))
            b.store(part, b.gep(element(elements.type), first, const("i64", begin)), _ALIGNMENT, hint)
        branch.otherwise()
        b.store(elements, first, align)
