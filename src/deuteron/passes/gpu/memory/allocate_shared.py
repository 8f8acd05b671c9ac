"""Gives every op that needs shared memory its place: `allocation.offset`, in bytes; `ttg.shared` is the total.

    %y = "ttg.convert_layout"(%x) : ...      ->     %y = "ttg.convert_layout"(%x) {allocation.offset = 0 : i32} : ...

Pieces that are in use at the same time do not overlap; those that are not may share a place. The largest are placed
first, each at the lowest offset that is free. It does not move ops to need less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from deuteron.analysis.shared_liveness import Buffer, shared_buffers
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.types import i32

OFFSET, TOTAL = "allocation.offset", "ttg.shared"


def offset_of(op: Operation) -> int:
    """Where the shared memory of an op begins."""
    return op.attributes[OFFSET].value.data


def total_of(module: ModuleOp) -> int:
    """The bytes of shared memory that a module's kernel needs."""
    return module.attributes[TOTAL].value.data


@dataclass(frozen=True)
class AllocateShared(ModulePass):
    """Places everything that is in shared memory."""

    name = "allocate-shared"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        total = 0
        for func in op.ops:
            if isinstance(func, FuncOp):
                buffers = shared_buffers(func)
                for buffer, offset in zip(buffers, place(buffers), strict=True):
                    buffer.op.attributes[OFFSET] = IntegerAttr(offset, i32)
                    total = max(total, offset + buffer.size)
        op.attributes[TOTAL] = IntegerAttr(total, i32)


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
