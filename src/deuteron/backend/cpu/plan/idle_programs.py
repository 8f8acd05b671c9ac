"""Which programs of a grid do nothing, so that the loop over programs leaves them out.

    if program_id(0) & 15 == 0: ...         Stride(0, 16): only every 16th along x does something

`group-programs` makes such kernels.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.ir import SSAValue

from deuteron.backend.cpu.plan.effects import only_loads_and_stores
from deuteron.backend.cpu.plan.grid_order import Order
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.effects import is_pure
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.program import GetProgramIdOp


class Stride(NamedTuple):
    """From one program that does something to the next, along an axis of the grid."""

    axis: int
    count: int

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
    *ops, _ = function.body.block.ops
    branches = [op for op in ops if not is_pure(op)]
    if len(branches) != 1 or not isinstance(branches[0], scf.IfOp):
        return EVERY_PROGRAM
    otherwise = branches[0].false_region.blocks
    is_one_sided = not otherwise or len(otherwise[0].ops) == 1
    stride = _stride_of(branches[0].cond) if is_one_sided else None
    return stride or EVERY_PROGRAM


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
