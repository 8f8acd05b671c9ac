"""Where threads have to wait before they touch shared memory, because others may not be done with it.

    read after write, write after read, write after write of overlapping bytes without a barrier in between

The analysis follows the accesses since the last barrier through the ops in order; loops go round until nothing is
added, and after an `scf.if` the accesses of both branches count. Ops with scratch memory write it, wait, and read it,
so that behind them only their reads count. A wait among the threads of one warp frees nothing for the other warps.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.scratch import is_descriptor, scratch_bytes, stays_in_warp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp, LocalStoreOp

READ, WRITE = "read", "write"


@dataclass(frozen=True)
class Access:
    """Bytes of shared memory that some threads read or wrote."""

    kind: str
    begin: int
    end: int

    def conflicts(self, other: Access) -> bool:
        overlap = self.begin < other.end and other.begin < self.end
        return overlap and WRITE in (self.kind, other.kind)


Pending = frozenset[Access]


class HazardAnalysis:
    """`needs_barrier`: the ops before which all threads have to wait. `offsets` says where the memory of an op is."""

    def __init__(self, func: FuncOp, offsets: dict[Operation, int]):
        self.needs_barrier: set[Operation] = set()
        self._offsets = offsets
        count = -1
        while count != len(self.needs_barrier):
            count = len(self.needs_barrier)
            self._block(func.body.block, frozenset())

    def _block(self, block: Block, pending: Pending) -> Pending:
        for op in block.ops:
            pending = self._op(op, pending)
        return pending

    def _op(self, op: Operation, pending: Pending) -> Pending:
        if isinstance(op, scf.ForOp):
            return self._loop([op.body.block], pending)
        if isinstance(op, scf.WhileOp):
            return self._loop([op.before_region.block, op.after_region.block], pending)
        if isinstance(op, scf.IfOp):
            branches = [self._block(region.block, pending) for region in op.regions if region.blocks]
            return frozenset().union(*branches, pending if len(branches) < 2 else ())
        if isinstance(op, BarrierOp):
            return frozenset()
        return self._access(op, pending)

    def _loop(self, blocks: list[Block], pending: Pending) -> Pending:
        while True:
            after = pending
            for block in blocks:
                after = self._block(block, after)
            if after <= pending:
                return pending
            pending = pending | after

    def _access(self, op: Operation, pending: Pending) -> Pending:
        first = self._first_access(op)
        if first is None:
            return pending
        if op in self.needs_barrier or any(first.conflicts(other) for other in pending):
            self.needs_barrier.add(op)
            pending = frozenset()
        if isinstance(op, LocalAllocOp | LocalStoreOp | LocalLoadOp):
            return pending | {first}
        read = Access(READ, first.begin, first.end)
        return pending | {first, read} if stays_in_warp(op) else frozenset({read})

    def _first_access(self, op: Operation) -> Access | None:
        if isinstance(op, LocalLoadOp):
            return self._of_descriptor(READ, op.src)
        if isinstance(op, LocalStoreOp):
            return self._of_descriptor(WRITE, op.dst)
        if op not in self._offsets or (isinstance(op, LocalAllocOp) and op.src is None):
            return None
        return Access(WRITE, self._offsets[op], self._offsets[op] + scratch_bytes(op))

    def _of_descriptor(self, kind: str, descriptor: SSAValue) -> Access:
        assert is_descriptor(descriptor.type) and isinstance(descriptor.owner, LocalAllocOp)
        begin = self._offsets[descriptor.owner]
        return Access(kind, begin, begin + scratch_bytes(descriptor.owner))
