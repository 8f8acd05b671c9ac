"""Gives buffers back to the warps that fill them only when the dots that read them are over.

    %d = "ttng.warp_group_dot"(%m, ...) <{isAsync}>         %d = "ttng.warp_group_dot"(%m, ...) <{isAsync}>
    "ttng.arrive_barrier"(%empty, %m)                ->     ...
    ...                                                     %e = "ttng.warp_group_dot_wait"(%d) <{pendings = 0}>
    %e = "ttng.warp_group_dot_wait"(%d)                     "ttng.arrive_barrier"(%empty, %m)

A dot that is in flight when its iteration ends is over after the wait in the next one: there the buffer of the
iteration before is given back, and after the loop's last wait that of the last iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from deuteron.analysis.shared_memory.dot_waits import wait_for
from deuteron.errors import InternalError
from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops
from deuteron.ir.ttg.memdesc_index import MemDescIndexOp
from deuteron.ir.ttg.views import is_view
from deuteron.ir.ttng.mbarrier import ArriveBarrierOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp, WarpGroupDotWaitOp
from deuteron.ir.types import i1
from deuteron.passes.carried_values import carry, has_iteration, new_argument
from deuteron.passes.rewrite import erase


class ReleaseBuffers(ModulePass):
    """Moves arrivals after the waits for what still reads the buffers."""

    name = "release-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for arrive in nested_ops(op, ArriveBarrierOp):
            waits = {wait_for(dot) for dot in _dots_in_flight(arrive)}
            if waits:
                _release(arrive, waits)


def _dots_in_flight(arrive: ArriveBarrierOp) -> list[WarpGroupDotOp]:
    """The asynchronous dots that read what the arrival gives back."""
    found, pending = [], list(arrive.deps)
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if is_view(user):
                pending += user.results
            elif isinstance(user, WarpGroupDotOp) and user.is_async.value.data:
                found.append(user)
    return found


def _release(arrive: ArriveBarrierOp, waits: set[Operation | None]) -> None:
    block = arrive.parent
    last = next((op for op in reversed(list(block.ops)) if op in waits), None)
    if waits <= set(block.ops):
        _move_after(arrive, last)
        return
    loop, inside = block.parent_op(), _wait_of_next_iteration(arrive)
    after = _wait_after(loop, waits) if isinstance(loop, scf.ForOp) else None
    if inside is None or after is None or waits != {after}:
        raise InternalError("a buffer is read by a dot that is not known to end", *from_attribute(arrive.location))
    _release_one_late(arrive, loop, inside, after)


def _move_after(arrive: ArriveBarrierOp, wait: Operation) -> None:
    if _is_before(arrive, wait):
        arrive.detach()
        wait.parent.insert_op_after(arrive, wait)


def _is_before(op: Operation, other: Operation) -> bool:
    return next(inner for inner in op.parent.ops if inner in (op, other)) is op


def _wait_of_next_iteration(arrive: ArriveBarrierOp) -> WarpGroupDotWaitOp | None:
    """The first wait in the loop that leaves only dots of its own iteration in flight."""
    issued = 0
    for op in arrive.parent.ops:
        if isinstance(op, WarpGroupDotWaitOp) and op.pendings.value.data <= issued:
            return op
        issued += isinstance(op, WarpGroupDotOp) and bool(op.is_async.value.data)
    return None


def _wait_after(loop: scf.ForOp, waits: set[Operation | None]) -> Operation | None:
    """The wait among these that follows the loop in its block."""
    return next((wait for wait in waits if wait is not None and wait.parent is loop.parent), None)


def _release_one_late(arrive: ArriveBarrierOp, loop: scf.ForOp, inside: Operation, after: Operation) -> None:
    """The loop carries which buffer the iteration before has read, and whether it gives it back."""
    following = _varying(arrive)
    previous = [new_argument(loop, value.type, "read") for value in following]
    before = Builder.before(loop)
    none = [before.constant(0, value.type) for value in following]
    b = Builder(InsertPoint.after(inside), loop.location)
    _arrive(b, arrive, previous, b.value(CmpIOp(loop.lb, loop.body.block.args[0], "slt")))
    new = carry(loop, none, following)
    last = new.results[len(new.results) - len(following) :]
    b = Builder(InsertPoint.after(after), loop.location)
    _arrive(b, arrive, last, has_iteration(b, new) or b.constant(True, i1))
    erase(arrive)


def _varying(arrive: ArriveBarrierOp) -> list[SSAValue]:
    """What of an arrival another iteration has otherwise: the number of the buffer, and then the predicate."""
    owner = arrive.alloc.owner
    numbers = [owner.index] if isinstance(owner, MemDescIndexOp) else []
    return numbers if arrive.pred is None else [*numbers, arrive.pred]


def _arrive(b: Builder, like: ArriveBarrierOp, varying: Sequence[SSAValue], runs: SSAValue) -> None:
    """Arrive with these values in the place of its own, if an iteration `runs`."""
    barrier = like.alloc
    if like.pred is not None:
        runs = b.value(arith.AndIOp(runs, varying[-1]))
    if isinstance(barrier.owner, MemDescIndexOp):
        barrier = b.value(MemDescIndexOp(barrier.owner.src, varying[0]))
    b.insert(ArriveBarrierOp(barrier, like.count.value.data, runs, num_ctas=like.num_ctas))
