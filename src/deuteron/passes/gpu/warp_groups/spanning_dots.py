"""Which dots by wgmma may be in flight at the end of their loop's body, into the next iteration.

    ^bb0(%c):
      %d = "ttng.warp_group_dot"(%m, %n, %c)      it only adds up what the loop carries, and %m, %n live longer than
      scf.yield %d                                the iteration

One that threads use in the iteration, or that reads what they store in it, is done when the iteration ends.
"""

from __future__ import annotations

from collections.abc import Container

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.ir.around import is_defined_in
from deuteron.ir.ttg.views import viewed
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp


def spans_iterations(dot: WarpGroupDotOp, ahead: Container[SSAValue] = ()) -> bool:
    """`ahead`: buffers of the loop's body whose copies are to be done ahead, and so will live longer."""
    loop = dot.parent_op()
    if not isinstance(loop, scf.ForOp) or len(dot.descriptors) < 2:
        return False
    buffers = map(viewed, dot.descriptors)
    if any(is_defined_in(buffer, loop) for buffer in buffers if buffer not in ahead):
        return False
    carried = _carried_by(dot, loop)
    return carried is not None and dot.c is carried and carried.has_one_use()


def _carried_by(dot: WarpGroupDotOp, loop: scf.ForOp) -> SSAValue | None:
    """The argument of the loop's body that is the dot in the next iteration, if it is nothing else."""
    uses = list(dot.result.uses)
    if len(uses) != 1 or uses[0].operation is not loop.body.block.last_op:
        return None
    return loop.body.block.args[1 + uses[0].index]
