"""The argument of the kernel that a pointer is into, through ops that move, repeat and reshape pointers, and loops."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

KEEPING = ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "ttg.convert_layout")


def base_argument(pointer: SSAValue) -> SSAValue | None:
    """None where it is not plain, as of pointers that were loaded."""
    while isinstance(pointer.owner, Operation) and pointer.owner.name in KEEPING:
        pointer = pointer.owner.operands[0]
    return _of_argument(pointer) if isinstance(pointer, BlockArgument) else None


def _of_argument(pointer: BlockArgument) -> SSAValue | None:
    """A pointer that a loop carries keeps its base: what advances it is an offset."""
    parent = pointer.block.parent_op()
    if isinstance(parent, scf.ForOp):
        return base_argument(parent.iter_args[pointer.index - 1])
    return pointer if parent is not None and parent.name == "tt.func" else None
