"""Issues dots by wgmma as early as their operands are there, so that they run while threads compute from another one.

    %s = warp_group_dot(%k, %q)                  %s = warp_group_dot(%k, %q)
    %p = exp of %s                               %e = warp_group_dot(%v, %do)
    %dv = warp_group_dot(%p, %do, %c)     ->     %p = exp of %s
    %e = warp_group_dot(%v, %do)                 %dv = warp_group_dot(%p, %do, %c)
    %ds = %p * (%e - delta)                      %ds = %p * (%e - delta)

Moved are dots of which both operands are in shared memory, and are there already: over what computes, and over other
dots, not over what fills shared memory, waits, or keeps it in order. Only where the sums take no more registers at a
time: they are those of the loop, or as large a tile that is computed on the way (%p) is kept beyond the dot anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.effects import ORDER, ORDER_OWN, SHARED, WRITE, effects_of, is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.ttg.layout import MemDescType, words_in_thread
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.ir.types import is_tile
from deuteron.passes.optimisation import Optimisation


class IssueDots(Optimisation):
    """Moves dots by wgmma up to another one."""

    name = "issue-dots"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for dot in nested_ops(op, WarpGroupDotOp):
            if all(isinstance(operand.type, MemDescType) for operand in (dot.a, dot.b)):
                _issue(dot)


def _issue(dot: WarpGroupDotOp) -> None:
    """Move a dot after the first one from which threads compute meanwhile, and what its operands are made by."""
    ops = _ops_before(dot)
    made_by = _made_by(dot, ops)
    first = _first_that_may_be_passed(dot, ops, made_by)
    if first is None:
        return
    previous = first
    for op in [*(op for op in ops[ops.index(first) :] if op in made_by), dot]:
        op.detach()
        first.parent.insert_op_after(op, previous)
        previous = op


def _ops_before(dot: WarpGroupDotOp) -> list[Operation]:
    """The ops of the block that come before a dot and over which it may be moved, as far as shared memory goes."""
    found: list[Operation] = []
    op = dot.prev_op
    while op is not None and not op.regions and not _holds_up(op):
        found.append(op)
        op = op.prev_op
    return found[::-1]


def _holds_up(op: Operation) -> bool:
    """Whether an op may fill what a dot reads, or orders accesses of it."""
    if isinstance(op, WarpGroupDotOp):
        return op.is_async.value.data
    kinds = {effect.kind for effect in effects_of(op) if effect.resource is SHARED}
    return bool(kinds & {WRITE, ORDER, ORDER_OWN})


def _made_by(dot: WarpGroupDotOp, ops: Sequence[Operation]) -> set[Operation]:
    """Those of the ops that a dot's operands come from."""
    needed, values = set(), set(dot.operands)
    for op in reversed(ops):
        if values & {*op.results}:
            needed.add(op)
            values |= {*op.operands}
    return needed


def _first_that_may_be_passed(
    dot: WarpGroupDotOp, ops: Sequence[Operation], made_by: set[Operation]
) -> WarpGroupDotOp | None:
    """The first dot to which all that is needed may be moved, and after which threads compute from its sums."""
    last_needed = max((index for index, op in enumerate(ops) if op in made_by and not is_pure(op)), default=-1)
    for index, op in enumerate(ops):
        if index > last_needed and isinstance(op, WarpGroupDotOp) and op not in made_by:
            computed = _computed_from(op, ops[index + 1 :])
            return op if computed and _takes_no_more(dot, computed) else None
    return None


def _computed_from(dot: WarpGroupDotOp, ops: Sequence[Operation]) -> list[SSAValue]:
    """The tiles that threads compute, in these ops, from the sums of a dot."""
    found: list[SSAValue] = [dot.result]
    for op in ops:
        if not isinstance(op, WarpGroupDotOp) and set(found) & {*op.operands}:
            found += [result for result in op.results if is_tile(result.type)]
    return found[1:]


def _takes_no_more(dot: WarpGroupDotOp, computed: Sequence[SSAValue]) -> bool:
    """Whether the sums of a dot need no registers earlier that would be free otherwise."""
    if isinstance(dot.c.owner, Block):
        return True
    is_fresh = isinstance(dot.c.owner, arith.ConstantOp) or dot.c.owner.parent is not dot.parent
    kept = (value for value in computed if any(_is_after(use.operation, dot) for use in value.uses))
    return is_fresh and any(words_in_thread(value.type) >= words_in_thread(dot.result.type) for value in kept)


def _is_after(op: Operation, other: Operation) -> bool:
    """Whether an op comes after another one of its block."""
    while op is not None and op is not other:
        op = op.prev_op
    return op is other
