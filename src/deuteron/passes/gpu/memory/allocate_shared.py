"""Gives every op that needs shared memory its place: `allocation.offset`, in bytes; `ttg.shared` is the total.

    %y = "ttg.convert_layout"(%x) : ...      ->     %y = "ttg.convert_layout"(%x) {allocation.offset = 0 : i32} : ...

Pieces that are in use at the same time do not overlap; those that are not may share a place. The largest are placed
first, each at the lowest offset that is free. It does not move ops to need less.

What ops need while they run has a place of its own where there is room, the smallest first: an op that finds there what
another one left has to wait until all threads have read that. Two sums in a loop so wait twice instead of four times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from deuteron.analysis.shared_memory.shared_liveness import Buffer, Interval, shared_buffers
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.types import i32

OFFSET, TOTAL = "allocation.offset", "ttg.shared"
# For each warp of a CTA, for places of their own: a multiprocessor has 2,133 or more for each warp that it can hold, of
# which a CTA takes 1 KB; so that not one CTA less fits.
OWN_BYTES = 1536


def offset_of(op: Operation) -> int:
    """Where the shared memory of an op begins."""
    return op.attributes[OFFSET].value.data


def total_of(module: ModuleOp) -> int:
    """The bytes of shared memory that a module's kernel needs."""
    return module.attributes[TOTAL].value.data


class AllocateShared(ModulePass):
    """Places everything that is in shared memory."""

    name = "allocate-shared"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        total, room = 0, OWN_BYTES * op.attributes["ttg.num-warps"].value.data
        for placed in nested_ops(op):
            placed.attributes.pop(OFFSET, None)  # of a text that has places
        for func in functions_in(op):
            buffers = with_own_places(shared_buffers(func), room)
            for buffer, offset in zip(buffers, place(buffers), strict=True):
                buffer.op.attributes[OFFSET] = IntegerAttr(offset, i32)
                total = max(total, offset + buffer.size)
        op.attributes[TOTAL] = IntegerAttr(total, i32)


def with_own_places(buffers: Sequence[Buffer], room: int) -> Sequence[Buffer]:
    """The smallest of what ops need while they run in use all the time, as many as there is room for."""
    room = max(room, bytes_of(buffers))
    always = Interval(0, max((buffer.interval.end for buffer in buffers), default=0))
    scratch = [index for index, buffer in enumerate(buffers) if not isinstance(buffer.op, LocalAllocOp)]
    smallest = sorted(scratch, key=lambda index: buffers[index].size)
    while smallest:
        own = set(smallest)
        placed = [replace(one, interval=always) if index in own else one for index, one in enumerate(buffers)]
        if bytes_of(placed) <= room:
            return placed
        smallest = smallest[: len(smallest) // 2]
    return buffers


def bytes_of(buffers: Sequence[Buffer]) -> int:
    """How much shared memory buffers take together."""
    return max((offset + buffer.size for offset, buffer in zip(place(buffers), buffers, strict=True)), default=0)


def place(buffers: Sequence[Buffer]) -> list[int]:
    """An offset for each buffer, so that no two that are in use at one time overlap."""
    offsets: dict[int, int] = {}
    for index in sorted(range(len(buffers)), key=lambda i: (-buffers[i].size, i)):
        buffer = buffers[index]
        taken = sorted(
            (offset, offset + buffers[other].size)
            for other, offset in offsets.items()
            if buffers[other].interval.overlaps(buffer.interval)
        )
        offsets[index] = _first_gap(taken, buffer)
    return [offsets[index] for index in range(len(buffers))]


def _first_gap(taken: list[tuple[int, int]], buffer: Buffer) -> int:
    offset = 0
    for begin, end in taken:
        if offset + buffer.size <= begin:
            break
        offset = max(offset, -(-end // buffer.alignment) * buffer.alignment)
    return offset
