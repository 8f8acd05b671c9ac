"""From where to where each piece of shared memory is in use, as positions in the order of a function's ops.

%m = "ttg.local_alloc"(%x)        Interval(5, 9): from here ...
...
%y = "ttg.local_load"(%m)         ... to the last use; to the end of the loop, where that is inside one
%z = "ttg.convert_layout"(%y)     Interval(10, 10): an op's scratch memory is in use while it runs
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation

from deuteron.analysis.scratch import scratch_bytes
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.shared import LocalAllocOp


@dataclass(frozen=True)
class Interval:
    """Positions, both ends included."""

    begin: int
    end: int

    def overlaps(self, other: Interval) -> bool:
        return self.begin <= other.end and other.begin <= self.end


@dataclass(frozen=True)
class Buffer:
    """Shared memory that an op needs: how many bytes, and when."""

    op: Operation
    size: int
    interval: Interval


def shared_buffers(func: FuncOp) -> list[Buffer]:
    """Every piece of shared memory of a function, in the order of the ops."""
    positions = {op: position for position, op in enumerate(func.walk())}
    buffers = []
    for op, position in positions.items():
        size = scratch_bytes(op)
        if size:
            end = _last_use(op, positions) if isinstance(op, LocalAllocOp) else position
            buffers.append(Buffer(op, size, Interval(position, end)))
    return buffers


def _last_use(alloc: LocalAllocOp, positions: dict[Operation, int]) -> int:
    return max((_end_of(use.operation, alloc.parent_block(), positions) for use in alloc.result.uses), default=0)


def _end_of(op: Operation, block: Block | None, positions: dict[Operation, int]) -> int:
    """The position of an op; where it is nested below `block`, the last position of what is nested there with it."""
    while op.parent_block() is not block:
        op = op.parent_op()
    return max(positions[inner] for inner in op.walk())
