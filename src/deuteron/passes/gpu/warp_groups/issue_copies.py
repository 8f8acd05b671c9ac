"""Issues copies ahead behind the dot by wgmma of an iteration, so that it runs while threads issue them.

    %d = "ttng.warp_group_dot"(%m, %n, %zero)              %d = "ttng.warp_group_dot"(%m, %n, %zero)
    %e = %d * %scales                              ->      ttg.async_copy_global_to_local ...
    %sum1 = %sum + %e                                      ttg.async_commit_group
    ttg.async_copy_global_to_local ...                     %e = %d * %scales
    ttg.async_commit_group                                 %sum1 = %sum + %e

Threads that use a dot's sums in its iteration wait for it. What is copied goes into the slot of the iteration before,
whose dot is over. Only of loops with one dot, and where nothing but what threads compute is passed.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.ttg.async_copy import AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp
from deuteron.passes.optimisation import Optimisation

COPYING = (AsyncCopyGlobalToLocalOp, AsyncCommitGroupOp)


class IssueCopies(Optimisation):
    """Moves copies ahead behind the dot by wgmma that threads wait for."""

    name = "issue-copies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in nested_ops(op, scf.ForOp):
            dots = nested_ops(loop, WarpGroupDotOp)
            if len(dots) == 1 and _is_used_in(loop.body.block, dots[0]):
                _issue_behind(dots[0])


def _is_used_in(body: Block, dot: WarpGroupDotOp) -> bool:
    """Whether threads compute from the sums of a dot in its iteration."""
    return dot.parent is body and any(use.operation is not body.last_op for use in dot.result.uses)


def _issue_behind(dot: WarpGroupDotOp) -> None:
    ops = _ops_to_last_copy(dot)
    copying = _needed_to_copy(ops)
    is_free = not any(operand.owner is dot for op in copying for operand in op.operands)
    if not is_free or not all(is_pure(op) or (op in copying and isinstance(op, COPYING)) for op in ops):
        return
    previous: Operation = dot
    for op in (op for op in ops if op in copying):
        op.detach()
        dot.parent.insert_op_after(op, previous)
        previous = op


def _ops_to_last_copy(dot: WarpGroupDotOp) -> list[Operation]:
    """The ops of the block from behind a dot to the last that belongs to a copy."""
    ops = list(dot.parent.ops)
    behind = ops[ops.index(dot) + 1 :]
    last = max((place for place, op in enumerate(behind) if isinstance(op, COPYING)), default=-1)
    return behind[: last + 1]


def _needed_to_copy(ops: Sequence[Operation]) -> set[Operation]:
    """Copies, and what of these ops makes their operands."""
    needed: set[Operation] = set()
    for op in reversed(ops):
        if isinstance(op, COPYING) or any(use.operation in needed for result in op.results for use in result.uses):
            needed.add(op)
    return needed
