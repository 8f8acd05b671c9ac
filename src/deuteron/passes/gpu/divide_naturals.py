"""Divides what is certainly not negative without a look at its sign.

    x = pid * 1024 + arange(0, 1024)
    x // 128, x % 128          ->     one shift of x, one `and`, in the place of four instructions each

Certain is what `ranges` says, in the grids that the function is launched with, of both operands and whatever divides.
Of x alone it says so where n is an argument, which may be negative: such a division is marked, and a thread divides by
the size of n. After all that asks what numbers are: in analyses quotients are signed.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation

from deuteron.analysis.axis.ranges import relies_on
from deuteron.ir.arith import OF_NATURAL, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import bit_width_of, i32, is_tile
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase

UNSIGNED = {arith.DivSIOp: arith.DivUIOp, arith.RemSIOp: arith.RemUIOp}


class DivideNaturals(Optimisation):
    """Makes divisions by numbers unsigned where nothing is negative, and marks those of what is not."""

    name = "divide-naturals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            found = nested_ops(func, arith.DivSIOp | arith.RemSIOp)
            for division in [one for one in found if _is_of_natural(one, func)]:
                if constant_value(division.rhs) is None:
                    division.attributes[OF_NATURAL] = UnitAttr()
                else:
                    _rewrite(division)


def _is_of_natural(division: Operation, func: FuncOp) -> bool:
    """Whether what is divided by one number for all elements, positive if it is known, is not negative."""
    number, is_scalar = constant_value(division.rhs), not is_tile(division.rhs.type)
    divides_by_one = number > 0 if number is not None else is_scalar or isinstance(division.rhs.owner, SplatOp)
    if not divides_by_one or bit_width_of(division.result.type) < bit_width_of(i32):
        return False
    return relies_on(lambda most: most(division.lhs) is not None, func)


def _rewrite(division: Operation) -> None:
    result = Builder.before(division).value(UNSIGNED[type(division)](division.lhs, division.rhs))
    result.name_hint = division.result.name_hint
    division.result.replace_all_uses_with(result)
    erase(division)
