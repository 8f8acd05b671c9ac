"""Which programs of a grid do nothing, so that the loop over programs leaves them out.

    if num_programs(0) < 8: ...             Stride(0, 16, 8): only every 16th along x does something, where there are
    else:                                   8 and more
        if program_id(0) & 15 == 0: ...

`group-programs` makes such kernels.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.ir import Block, SSAValue

from deuteron.backend.cpu.plan.effects import only_loads_and_stores
from deuteron.backend.cpu.plan.programs.grid_order import Order
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.effects import is_pure
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp


class Stride(NamedTuple):
    """From one program that does something to the next, along an axis of the grid that has at least so many."""

    axis: int
    count: int
    least: int = 0

    def first_in(self, order: Order) -> Order:
        """An order in which these are found one after the other."""
        if self == EVERY_PROGRAM:
            return order
        return self.axis, *(axis for axis in order if axis != self.axis)


EVERY_PROGRAM = Stride(0, 1)


def busy_programs(function: FuncOp) -> Stride:
    """Those that do something, as far as the one branch of a kernel says, where programs come in any order."""
    if not only_loads_and_stores(function):
        return EVERY_PROGRAM
    branch = _only_branch(function.body.block)
    if branch is None:
        return EVERY_PROGRAM
    few = _few_programs(branch.cond)
    others = _only_branch(branch.false_region.block) if few and branch.false_region.blocks else branch
    stride = _stride_of(others.cond) if others is not None and _is_one_sided(others) else None
    if stride is None or (few and few.axis != stride.axis):
        return EVERY_PROGRAM
    return stride._replace(least=few.least) if few else stride


def _only_branch(block: Block) -> scf.IfOp | None:
    """The branch that has all effects of a block."""
    branches = [op for op in list(block.ops)[:-1] if not is_pure(op)]
    return branches[0] if len(branches) == 1 and isinstance(branches[0], scf.IfOp) else None


def _is_one_sided(branch: scf.IfOp) -> bool:
    otherwise = branch.false_region.blocks
    return not otherwise or len(otherwise[0].ops) == 1


def _few_programs(condition: SSAValue) -> Stride | None:
    """Where the grid has fewer than so many along an axis."""
    op = condition.owner
    if not isinstance(op, CmpIOp) or op.predicate_name != "slt" or not isinstance(op.lhs.owner, GetNumProgramsOp):
        return None
    least = constant_value(op.rhs)
    return Stride(op.lhs.owner.axis.value.data, 1, least) if least is not None else None


def _stride_of(condition: SSAValue) -> Stride | None:
    """Where the last bits of a program's id are 0."""
    op = condition.owner
    if not isinstance(op, CmpIOp) or op.predicate_name != "eq" or constant_value(op.rhs) != 0:
        return None
    bits = op.lhs.owner
    if not isinstance(bits, arith.AndIOp) or not isinstance(bits.lhs.owner, GetProgramIdOp):
        return None
    mask = constant_value(bits.rhs)
    is_of_last = mask is not None and mask > 0 and mask & (mask + 1) == 0
    return Stride(bits.lhs.owner.axis.value.data, mask + 1) if is_of_last else None
