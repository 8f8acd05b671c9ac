"""From where to where each piece of shared memory is in use, as positions in the order of a function's ops.

%m = "ttg.local_alloc"(%x)        Interval(5, 9): from here ...
...
%y = "ttg.local_load"(%m)         ... to the last use; to the end of the loop, where that is inside one
%z = "ttg.convert_layout"(%y)     Interval(10, 10): an op's scratch memory is in use while it runs

Barriers are in use to the end of the function.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation

from deuteron.analysis.shared_memory.dot_waits import wait_for
from deuteron.analysis.shared_memory.scratch import scratch_bytes
from deuteron.ir.nested import nested_ops, of_kind
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp, specialized_in
from deuteron.ir.ttng.mbarrier import InitBarrierOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp

ALIGNMENT = 128
Specialized = dict[Block, WarpSpecializeOp]  # by the block that they are in


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
    ops = nested_ops(func)
    positions = {op: position for position, op in enumerate(ops)}
    specialized = {op.parent: op for op in reversed(of_kind(ops, WarpSpecializeOp))}
    buffers = []
    for op in ops:
        size = scratch_bytes(op)
        if size:
            is_alloc = isinstance(op, LocalAllocOp)
            alignment = max(op.result.type.tile.encoding.alignment.data, ALIGNMENT) if is_alloc else ALIGNMENT
            buffers.append(Buffer(op, size, _interval(op, positions, specialized), alignment))
    return buffers


def _interval(op: Operation, positions: dict[Operation, int], by_block: Specialized) -> Interval:
    """What a partition of warps needs for itself, it needs while the others do anything."""
    specialized = specialized_in(op)
    if specialized is not None:
        return Interval(positions[specialized], len(positions))
    is_alloc = isinstance(op, LocalAllocOp)
    return Interval(positions[op], _last_use(op, positions, by_block) if is_alloc else positions[op])


def _last_use(alloc: LocalAllocOp, positions: dict[Operation, int], by_block: Specialized) -> int:
    """The last use of the memory, through any view of it; a dot in flight uses it until it is waited for."""
    last, pending, block = positions[alloc], [alloc.result], _block_of_uses(alloc, by_block)
    while pending:
        for use in pending.pop().uses:
            if is_view(use.operation):
                pending += use.operation.results
            if isinstance(use.operation, InitBarrierOp):
                return len(positions)
            if specialized_in(use.operation) is None:
                last = max(last, _end_of(use.operation, block, positions))
            if isinstance(use.operation, WarpGroupDotOp) and use.operation.is_async.value.data:
                last = max(last, _end_of(wait_for(use.operation), block, positions))
    return last


def _block_of_uses(alloc: LocalAllocOp, by_block: Specialized) -> Block | None:
    """The block whose order says when the memory is used: where warps are specialised, that of the default region,
    since it waits for everything that partitions store.
    """
    block = alloc.parent_block()
    specialized = by_block.get(block)
    return specialized.default.block if specialized is not None else block


def _end_of(op: Operation | None, block: Block, positions: dict[Operation, int]) -> int:
    """The position of an op; where it is nested below `block`, the last position of what is nested there with it; the
    end of the function where it is not below it.
    """
    around = block.find_ancestor_op_in_block(op) if op is not None else None
    return positions[_last_in(around)] if around is not None else len(positions)


def _last_in(op: Operation) -> Operation:
    """What comes last of an op and all that is in it."""
    blocks = [block for region in op.regions for block in region.blocks if block.last_op is not None]
    return _last_in(blocks[-1].last_op) if blocks else op
