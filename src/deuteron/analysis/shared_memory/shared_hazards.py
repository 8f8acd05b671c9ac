"""Where threads have to wait before they touch shared memory, because others may not be done with it.

    read after write, write after read, write after write of overlapping bytes without a barrier in between

The analysis follows the accesses since the last barrier through the ops in order; loops are repeated until nothing is
added, and after an `scf.if` the accesses of both branches count. Ops with scratch memory write it, wait, and read it,
so that after them only their reads count. A wait among the threads of one warp frees nothing for the other warps. A
dot in flight reads until it is waited for, as a dot that is not asynchronous does as well; only a barrier after that
frees what it read. A copy in flight writes until it is waited for; that no thread reads before is up to the pass that
made it. Of several buffers, those are told apart whose indices are known to differ. The regions of
`ttg.warp_specialize` are gone through one by one: what one stores for another is in order by mbarriers, and all wait
for each other in front.

What one thread does alone, the copies of TMA and what it does to their barriers, is in order by itself; a block that
TMA loads is there for every thread that has waited at the barrier, so that only what was there before matters. A store
of TMA reads until it is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.ir import Operation, OpResult

from deuteron.analysis.dataflow import Forward
from deuteron.analysis.shared_memory import buffer_index
from deuteron.analysis.shared_memory.buffer_index import BufferIndex
from deuteron.analysis.shared_memory.scratch import scratch_bytes, stays_in_warp
from deuteron.ir.around import Loop
from deuteron.ir.effects import READ, SHARED, WRITE, Effect, Kind, own_effects
from deuteron.ir.nested import nested_ops, of_kind
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, num_buffers
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.ttng.mbarrier import BarrierExpectOp, InitBarrierOp, InvalBarrierOp
from deuteron.ir.ttng.tma import (
    AsyncTMACopyGlobalToLocalOp,
    AsyncTMACopyLocalToGlobalOp,
    AsyncTMAReduceOp,
    AsyncTMAStoreWaitOp,
)
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp

WAITS = (WarpGroupDotWaitOp, AsyncWaitOp, AsyncTMAStoreWaitOp)
ORDERING = (scf.ForOp, scf.WhileOp, scf.IfOp, WarpSpecializeOp, BarrierOp, AsyncCommitGroupOp, *WAITS)
TMA_STORES = (AsyncTMACopyLocalToGlobalOp, AsyncTMAReduceOp)
BY_ONE = (InitBarrierOp, InvalBarrierOp, BarrierExpectOp, AsyncTMACopyGlobalToLocalOp, *TMA_STORES)
EVERYWHERE = 0, 1 << 32


@dataclass(frozen=True)
class Access:
    """Bytes of shared memory that some threads read or wrote, of several buffers the one at `index`. `in_flight`: read
    by a dot, or written by a copy, that was not waited for, and that many dots, or groups of copies, came after
    it. `shared_by_regions`: of memory that is allocated before a `ttg.warp_specialize`, and used inside.
    `by_one`: by the one thread that does what is done once; in flight it is a store of TMA.
    """

    kind: Kind
    begin: int
    end: int
    in_flight: int | None = None
    index: BufferIndex | None = None
    shared_by_regions: bool = False
    by_one: bool = False

    def conflicts(self, other: Access) -> bool:
        """Whether a barrier has to be between this access and an earlier one."""
        if self.by_one and other.by_one:
            return False
        overlap = self.begin < other.end and other.begin < self.end
        if self.shared_by_regions and other.shared_by_regions:
            return False
        return overlap and WRITE in (self.kind, other.kind) and not self._is_apart(other) and not other.is_copy

    def _is_apart(self, other: Access) -> bool:
        if (self.begin, self.end) != (other.begin, other.end) or self.index is None or other.index is None:
            return False
        return self.index.differs(other.index)

    @property
    def is_copy(self) -> bool:
        """Whether it is a copy in flight."""
        return self.kind == WRITE and self.in_flight is not None


Pending = frozenset[Access]


class HazardAnalysis(Forward[Access]):
    """`needs_barrier`: the ops before which all threads have to wait. `offsets` says where the memory of an op is."""

    def __init__(self, func: FuncOp, offsets: dict[Operation, int]):
        super().__init__()
        self.needs_barrier: set[Operation] = set()
        self._offsets = offsets
        self._shared_by_regions = _before_regions(func)
        ops = nested_ops(func)[1:]
        self._accesses = {op: found for op in ops if (found := self._first_accesses(op))}
        self._changing = {*self._accesses, *of_kind(ops, ORDERING)}
        self._most_left = max(map(_left_by, of_kind(ops, WAITS)), default=0)
        self._after: dict[tuple[Operation, Pending, int, bool], Pending] = {}
        self._settled: dict[tuple[Operation, int], Pending] = {}  # by loop, and how many barriers there are
        self._decides = True
        self._block(func.body.block, frozenset())

    def _matters(self, op: Operation) -> bool:
        return op in self._changing

    def _op(self, op: Operation, pending: Pending) -> Pending:
        if isinstance(op, Loop):
            return self._loop(op, pending)
        if isinstance(op, scf.IfOp):
            return self._any_of(op.regions, pending)
        if isinstance(op, WarpSpecializeOp):
            return self._any_of(op.regions, _in_flight(pending))
        if isinstance(op, BarrierOp):
            return _in_flight(pending)
        if isinstance(op, WarpGroupDotWaitOp):
            return _waited(pending, READ, _left_by(op))
        if isinstance(op, AsyncWaitOp):
            return _waited(pending, WRITE, _left_by(op))
        if isinstance(op, AsyncTMAStoreWaitOp):
            return _waited(pending, READ, _left_by(op), by_one=True)
        if isinstance(op, AsyncCommitGroupOp):
            return self._overtaken(pending, WRITE)
        return self._access(op, pending)

    def _loop(self, loop: Loop, pending: Pending) -> Pending:
        """Once for what is pending and the barriers so far: loops in loops would take 2 to the power of their depth."""
        key = loop, pending, len(self.needs_barrier), self._decides
        if key not in self._after:
            self._after[key] = self._follow_loop(loop, pending)
        return self._after[key]

    def _follow_loop(self, loop: Loop, pending: Pending) -> Pending:
        """Where a barrier has to be is decided when it is known what every iteration may meet: one that the first few
        seem to need can be saved by one before it that later ones need.
        """
        while True:
            stable = self._settle(loop, pending)
            count = len(self.needs_barrier)
            if self._decides:
                self._body(loop, stable)
            if count == len(self.needs_barrier):
                return buffer_index.renamed_after(self._at_end(loop, stable), loop)

    def _settle(self, loop: Loop, pending: Pending) -> Pending:
        """The accesses that an iteration may meet, given the barriers so far. With these, loops around it only add to
        what is pending.
        """
        key = loop, len(self.needs_barrier)
        decides, self._decides = self._decides, False
        self._settled[key] = self._stable(loop, pending | self._settled.get(key, frozenset()))
        self._decides = decides
        return self._settled[key]

    def _carried(self, loop: Loop, pending: Pending) -> Pending:
        return buffer_index.renamed_in_next_iteration(pending, loop)

    def _access(self, op: Operation, pending: Pending) -> Pending:
        accesses = self._accesses[op]
        if self._decides and any(one.conflicts(other) for one in accesses for other in pending):
            self.needs_barrier.add(op)
        if op in self.needs_barrier:
            pending = _in_flight(pending)
        if isinstance(op, WarpGroupDotOp):
            if not op.is_async.value.data:
                return _waited(pending, READ, 0) | set(accesses)
            return self._overtaken(pending, READ) | {replace(access, in_flight=0) for access in accesses}
        if isinstance(op, TMA_STORES):
            return self._overtaken(pending, READ, by_one=True) | {replace(access, in_flight=0) for access in accesses}
        if isinstance(op, AsyncTMACopyGlobalToLocalOp):
            return pending
        if isinstance(op, AsyncCopyGlobalToLocalOp):
            return pending | {replace(access, in_flight=-1) for access in accesses}
        if op not in self._offsets or isinstance(op, LocalAllocOp):
            return pending | set(accesses)
        reads = {Access(READ, access.begin, access.end) for access in accesses}
        return _in_flight(pending) | reads if waits(op) else pending | {*accesses, *reads}

    def _overtaken(self, pending: Pending, kind: Kind, by_one: bool = False) -> Pending:
        """The accesses when one more dot, or group of copies, is issued; counts end where every wait leaves fewer, so
        that loops come to a state that stays.
        """
        return frozenset(
            replace(access, in_flight=min(access.in_flight + 1, self._most_left))
            if access.kind == kind and access.by_one == by_one and access.in_flight is not None
            else access
            for access in pending
        )

    def _first_accesses(self, op: Operation) -> list[Access]:
        if op in self._offsets:
            is_filled = not isinstance(op, LocalAllocOp) or op.src is not None
            return [Access(WRITE, self._offsets[op], self._offsets[op] + scratch_bytes(op))] if is_filled else []
        effects = [effect for effect in own_effects(op) if effect.resource is SHARED and effect.kind in (READ, WRITE)]
        return [self._access_of(effect, isinstance(op, BY_ONE)) for effect in effects]

    def _access_of(self, effect: Effect, by_one: bool) -> Access:
        descriptor = effect.value
        if descriptor is None:
            return Access(effect.kind, *EVERYWHERE)
        index = None
        while isinstance(descriptor, OpResult) and is_view(view := descriptor.op):
            if isinstance(view, MemDescIndexOp):
                index = buffer_index.index_of(view.index, num_buffers(view.src.type))
            descriptor = view.operands[0]
        assert isinstance(descriptor.owner, LocalAllocOp)
        begin = self._offsets[descriptor.owner]
        is_shared = descriptor.owner in self._shared_by_regions
        return Access(effect.kind, begin, begin + scratch_bytes(descriptor.owner), None, index, is_shared, by_one)


def waits(op: Operation) -> bool:
    """Whether all threads wait for each other while an op with scratch memory runs."""
    return not isinstance(op, LocalAllocOp) and not stays_in_warp(op)


def _before_regions(func: FuncOp) -> set[Operation]:
    """The ops before a `ttg.warp_specialize`, in its block."""
    ops = list(func.body.block.ops)
    return set(ops) if any(isinstance(op, WarpSpecializeOp) for op in ops) else set()


def _in_flight(pending: Pending) -> Pending:
    """What a barrier leaves: dots and copies that are not over."""
    return frozenset(access for access in pending if access.in_flight is not None)


def _left_by(wait: WarpGroupDotWaitOp | AsyncWaitOp | AsyncTMAStoreWaitOp) -> int:
    """How many dots, or groups of copies, a wait leaves in flight."""
    return (wait.num if isinstance(wait, AsyncWaitOp) else wait.pendings).value.data


def _waited(pending: Pending, kind: Kind, left: int, by_one: bool = False) -> Pending:
    """The accesses after a wait that leaves that many dots, or groups of copies, in flight."""

    def is_over(access: Access) -> bool:
        is_one = access.kind == kind and access.by_one == by_one and access.in_flight is not None
        return is_one and access.in_flight >= left

    return frozenset(replace(access, in_flight=None) if is_over(access) else access for access in pending)
