"""From where to where each piece of shared memory is in use, as positions in the order of a function's ops.

%m = "ttg.local_alloc"(%x)        Interval(5, 9): from here ...
...
%y = "ttg.local_load"(%m)         ... to the last use; to the end of the loop, where that is inside one
%z = "ttg.convert_layout"(%y)     Interval(10, 10): an op's scratch memory is in use while it runs
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation

from deuteron.analysis.product_waits import wait_for
from deuteron.analysis.scratch import scratch_bytes
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp

ALIGNMENT = 128


@dataclass(frozen=True)
class Interval:
    """Positions, both ends included."""

    begin: int
    end: int

    def overlaps(self, other: Interval) -> bool:
        return self.begin <= other.end and other.begin <= self.end


@dataclass(frozen=True)
class Buffer:
    """Shared memory that an op needs: how many bytes, when, and what its address is a multiple of."""

    op: Operation
    size: int
    interval: Interval
    alignment: int = ALIGNMENT


def shared_buffers(func: FuncOp) -> list[Buffer]:
    """Every piece of shared memory of a function, in the order of the ops."""
    positions = {op: position for position, op in enumerate(func.walk())}
    buffers = []
    for op, position in positions.items():
        size = scratch_bytes(op)
        if size:
            is_alloc = isinstance(op, LocalAllocOp)
            end = _last_use(op, positions) if is_alloc else position
            alignment = max(op.result.type.tile.encoding.alignment.data, ALIGNMENT) if is_alloc else ALIGNMENT
            buffers.append(Buffer(op, size, Interval(position, end), alignment))
    return buffers


def _last_use(alloc: LocalAllocOp, positions: dict[Operation, int]) -> int:
    """The last use of the memory, through any view of it; a product in flight uses it until it is waited for."""
    last, pending = 0, [alloc.result]
    while pending:
        for use in pending.pop().uses:
            last = max(last, _end_of(use.operation, alloc.parent_block(), positions))
            if is_view(use.operation):
                pending += use.operation.results
            elif isinstance(use.operation, WarpGroupDotOp) and use.operation.is_async.value.data:
                wait = wait_for(use.operation)
                last = max(last, _end_of(wait, alloc.parent_block(), positions))
    return last


def _end_of(op: Operation | None, block: Block | None, positions: dict[Operation, int]) -> int:
    """The position of an op; where it is nested below `block`, the last position of what is nested there with it; the
    end of the function where it is not below it.
    """
    while op is not None and op.parent_block() is not block:
        op = op.parent_op()
    return max(positions[inner] for inner in op.walk()) if op is not None else len(positions)
