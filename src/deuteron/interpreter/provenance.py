"""The kernel argument that a pointer was computed from, found by walking back through the ops that make pointers.

    %p = splat %x ; %q = addptr %p, %i ; load %q      ->  %x

A kernel that runs past the end of one array may land in another one; knowing where the pointer came from, the
interpreter still sees it, and can name the array. A pointer from an integer, or from several arguments, has none.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, SSAValue

from deuteron.ir.arith import SelectOp
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.reached import reached
from deuteron.ir.tt.block_pointer import AdvanceOp, MakeTensorPtrOp
from deuteron.ir.tt.convert import BitcastOp
from deuteron.ir.tt.descriptor import MakeTensorDescriptorOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp, UnsplatOp

_KEEP_FIRST_OPERAND = (
    AddPtrOp,
    AdvanceOp,
    MakeTensorPtrOp,
    MakeTensorDescriptorOp,
    SplatOp,
    UnsplatOp,
    BroadcastOp,
    ExpandDimsOp,
    ReshapeOp,
    TransOp,
    BitcastOp,
)


def source_argument(pointer: SSAValue) -> BlockArgument | None:
    """The one argument of the function that `pointer` is computed from, or None."""
    sources: set[BlockArgument] = set()
    for value in reached([pointer], _origins):
        if isinstance(value, BlockArgument) and isinstance(value.owner.parent_op(), FuncOp):
            sources.add(value)
        elif not _origins(value):
            return None
    return sources.pop() if len(sources) == 1 else None


def _origins(value: SSAValue) -> Sequence[SSAValue]:
    """The values that this one may be, moved by some offset; none if that cannot be said."""
    op = value.owner
    if isinstance(op, _KEEP_FIRST_OPERAND):
        return op.operands[:1]
    return [op.true_value, op.false_value] if isinstance(op, SelectOp) else forwarded_from(value)
