"""Copies by cp.async that are still in flight where what they write is read, or written again.

    "ttg.async_copy_global_to_local"(%p, %b)     then a group, and two more groups
    "ttg.async_wait"() <{num = 2 : i32}>         all but the last two groups are done: this one is
    "ttg.local_load"(%b)                         an error where `num` is 3, or without the wait

The copies are followed through the ops in order; loops are repeated until nothing is added, and after an `scf.if` those
of both branches count. Of several buffers, an index and a copy's are the same where they are as many steps from the
same number, as buffer_index.py has it; from what a loop begins with on, also from what it carries. What may be
the same or not is no error: how the slots of a loop's copies are called after it is not known; but none may be in
flight into buffers whose life ends. A copy that an mbarrier counts is
waited for there. The warps of a partition have no copies of those in front.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from deuteron.analysis.dataflow import Forward
from deuteron.analysis.shared_memory import buffer_index
from deuteron.analysis.shared_memory.buffer_index import BufferIndex
from deuteron.errors import IRError
from deuteron.ir.around import Loop
from deuteron.ir.effects import READ, SHARED, WRITE, own_effects
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp, num_buffers
from deuteron.ir.ttg.shared import LocalDeallocOp
from deuteron.ir.ttg.views import is_view, viewed
from deuteron.ir.ttg.warp_specialize import WarpSpecializeOp
from deuteron.ir.ttng.mbarrier import AsyncCopyMBarrierArriveOp
from deuteron.ir.types import i32

ORDERING = (
    scf.ForOp,
    scf.WhileOp,
    scf.IfOp,
    WarpSpecializeOp,
    AsyncCommitGroupOp,
    AsyncWaitOp,
    AsyncCopyMBarrierArriveOp,
)


@dataclass(frozen=True)
class Copy:
    """A copy in flight into the one at `index` of the buffers `alloc`, None if that is not known, and how many groups
    came after its own: -1 before there is one.
    """

    alloc: SSAValue
    index: BufferIndex | None
    newer: int = -1


InFlight = frozenset[Copy]


def check_copies(module: ModuleOp) -> None:
    """Raise IRError where the text of a module uses what a copy in flight writes."""
    for func in functions_in(module):
        if nested_ops(func, AsyncCopyGlobalToLocalOp):
            _Copies(func)


class _Copies(Forward[Copy]):
    """Follows the copies of a function."""

    def __init__(self, func: FuncOp):
        super().__init__()
        self._most = max((op.num.value.data for op in nested_ops(func, AsyncWaitOp)), default=0)
        self._after: dict[tuple[Operation, InFlight], InFlight] = {}
        self._block(func.body.block, frozenset())

    def _matters(self, op: Operation) -> bool:
        return isinstance(op, ORDERING) or bool(_touched(op))

    def _op(self, op: Operation, copies: InFlight) -> InFlight:
        if isinstance(op, Loop):
            return self._loop(op, copies)
        if isinstance(op, scf.IfOp):
            return self._any_of(op.regions, copies)
        if isinstance(op, WarpSpecializeOp):
            for partition in op.partitions:
                self._block(partition.block, frozenset())
            return self._block(op.default.block, copies)
        if isinstance(op, AsyncCommitGroupOp):  # counts end somewhere, so that those of a loop do
            return frozenset(replace(copy, newer=min(copy.newer + 1, self._most)) for copy in copies)
        if isinstance(op, AsyncWaitOp):
            return frozenset(copy for copy in copies if copy.newer < op.num.value.data)
        return frozenset() if isinstance(op, AsyncCopyMBarrierArriveOp) else _access(op, copies)

    def _loop(self, loop: Loop, copies: InFlight) -> InFlight:
        """Once for what is in flight: loops in loops would take 2 to the power of their depth."""
        if (loop, copies) not in self._after:
            stable = self._stable(loop, copies | _as_carried(loop, copies))
            self._after[loop, copies] = buffer_index.renamed_after(self._at_end(loop, stable), loop)
        return self._after[loop, copies]

    def _carried(self, loop: Loop, copies: InFlight) -> InFlight:
        return buffer_index.renamed_in_next_iteration(copies, loop)


def _touched(op: Operation) -> list[SSAValue]:
    """The shared memory that an op reads, writes or gives back."""
    effects = [one for one in own_effects(op) if one.resource is SHARED and one.kind in (READ, WRITE)]
    found = [op.src] if isinstance(op, LocalDeallocOp) else [effect.value for effect in effects]
    return [descriptor for descriptor in found if descriptor is not None]


def _access(op: Operation, copies: InFlight) -> InFlight:
    is_end = isinstance(op, LocalDeallocOp)
    for descriptor in _touched(op):
        alloc, index = viewed(descriptor), _index_of(descriptor)
        if any(copy.alloc is alloc and (is_end or copy.index == index) for copy in copies):
            raise IRError(
                f"{op.name} of what a copy in flight writes: no ttg.async_wait waits for it before, or each leaves it "
                "in flight (num)",
                *from_attribute(op.location),
            )
    return copies | {Copy(viewed(op.dst), _index_of(op.dst))} if isinstance(op, AsyncCopyGlobalToLocalOp) else copies


def _index_of(descriptor: SSAValue) -> BufferIndex:
    while isinstance(descriptor, OpResult) and is_view(view := descriptor.op):
        if isinstance(view, MemDescIndexOp):
            return buffer_index.index_of(view.index, num_buffers(view.src.type))
        descriptor = view.operands[0]
    return BufferIndex(1, None, 0)


def _as_carried(loop: Operation, copies: InFlight) -> InFlight:
    """Copies before a loop as its first iteration calls them: so many steps from a number that it carries."""
    found = set()
    arguments = loop.body.block.args[1:] if isinstance(loop, scf.ForOp) else ()
    for copy in (copy for copy in copies if copy.index is not None):
        index = copy.index
        for argument, begin in zip(arguments, getattr(loop, "iter_args", ()), strict=False):
            first = buffer_index.index_of(begin, index.count)
            if argument.type == i32 and first.start is index.start:
                steps = (index.offset - first.offset) % index.count
                found.add(replace(copy, index=BufferIndex(index.count, argument, steps)))
    return frozenset(found)
