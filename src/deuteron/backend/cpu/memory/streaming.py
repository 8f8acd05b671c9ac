"""Stores that bypass the caches, in launches which write more than the last cache holds.

    streams = programs * num_bytes >= cache and out != x        once for a launch
    if streams and address % 64 == 0:   store !nontemporal      for each vector; that a launch streams is asked first,
    else:                               store                   since most do not
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

from deuteron.backend.cpu.plan.programs.streams import Rows, Streams
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, element, width

# Whole lines are stored where addresses are aligned to them, else parts as large as x86-64 needs at least: gelu of fp32
# takes 4.0 ms for 2 ** 24 elements by lines, 4.9 by parts, and an addition 3.4, 3.6 and without either 4.7.
_LINE, _PART = 64, 16


def launch_streams(
    b: Builder, streams: Streams, cache_bytes: int, arguments: Mapping[SSAValue, Value], sizes: Sequence[Value]
) -> Value:
    """Whether a launch over a grid of these sizes stores past the caches."""
    if not streams.stores:
        return const("i1", False)
    x, y, z = (b.zext(size, "i64") for size in sizes)
    known = sum(rows.num_bytes * rows.extent for rows in streams.rows if rows.limit is None)
    num_bytes = const("i64", known)
    for rows in streams.rows:
        if rows.limit is not None:
            num_bytes = b.add(num_bytes, _bytes_of_rows(b, rows, arguments[rows.limit]))
    condition = b.icmp("uge", b.mul(b.mul(b.mul(x, y), z), num_bytes), const("i64", cache_bytes))
    pairs = product(streams.written, streams.read)
    for written, read in sorted(pairs, key=lambda pair: [argument.index for argument in pair]):
        condition = b.and_(condition, b.icmp("ne", arguments[written], arguments[read]))
    return condition


def _bytes_of_rows(b: Builder, rows: Rows, limit: Value) -> Value:
    """What a program writes of rows up to a limit."""
    wide = b.sext(limit, "i64") if limit.type != "i64" else limit
    count = b.umin(b.smax(wide, const("i64", 0)), const("i64", rows.extent))
    return b.mul(count, const("i64", rows.num_bytes))


def fence_streams(b: Builder, streams: Value) -> None:
    """After the programs: what they stored comes before whatever this thread does next."""
    if streams.is_constant:
        return
    with b.if_(streams, "streamed"):
        b.fence("seq_cst")


def can_stream(elements: Value) -> bool:
    """Whether the halves of a vector are parts that may be stored past the caches."""
    return _half_bytes(elements) >= _PART


def store_streaming(b: Builder, elements: Value, first: Value, align: int, streams: Value) -> None:
    """Store a vector, past the caches where the launch does and the address is aligned."""
    offset = b.ptrtoint(first, "i64")
    wanted = sorted({min(_LINE, _half_bytes(elements)), _PART}, reverse=True)

    def store(alignments: Sequence[int]) -> None:
        if not alignments:
            b.store(elements, first, align)
            return
        low = b.and_(offset, const("i64", alignments[0] - 1))
        with b.if_(b.icmp("eq", low, const("i64", 0)), "stream") as branch:
            _store_halves(b, elements, first, alignments[0])
            branch.otherwise()
            store(alignments[1:])

    with b.if_(streams, "streams") as branch:
        store(wanted)
        branch.otherwise()
        store([])


def _store_halves(b: Builder, elements: Value, first: Value, align: int) -> None:
    """Of two equal stores LLVM would make one that may not bypass the caches."""
    count, hint = width(elements.type) // 2, f"!nontemporal {b.module.metadata('!{i32 1}')}"
    for begin in (0, count):
        half = b.shufflevector(elements, None, range(begin, begin + count))
        b.store(half, b.gep(element(elements.type), first, const("i64", begin)), align, hint)


def _half_bytes(elements: Value) -> int:
    return width(elements.type) * byte_width(element(elements.type)) // 2
