"""Divides what is certainly not negative without a look at its sign.

    x = pid * 1024 + arange(0, 1024)
    x // 128, x % 128          ->     one shift of x, one `and`, in the place of four instructions each

Certain is what `ranges` says, in the grids that the function is launched with, of both operands and whatever divides.
After all that asks what numbers are: in analyses quotients are signed.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from deuteron.analysis.axis.ranges import relies_on
from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.types import bit_width_of, i32
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase

UNSIGNED = {arith.DivSIOp: arith.DivUIOp, arith.RemSIOp: arith.RemUIOp}


class DivideNaturals(Optimisation):
    """Makes divisions by numbers unsigned where nothing is negative."""

    name = "divide-naturals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            found = nested_ops(func, arith.DivSIOp | arith.RemSIOp)
            for division in [one for one in found if _is_natural(one, func)]:
                _rewrite(division)


def _is_natural(division: Operation, func: FuncOp) -> bool:
    if (constant_value(division.rhs) or 0) <= 0 or bit_width_of(division.result.type) < bit_width_of(i32):
        return False
    return relies_on(lambda most: most(division.lhs) is not None, func)


def _rewrite(division: Operation) -> None:
    result = Builder.before(division).value(UNSIGNED[type(division)](division.lhs, division.rhs))
    result.name_hint = division.result.name_hint
    division.result.replace_all_uses_with(result)
    erase(division)
