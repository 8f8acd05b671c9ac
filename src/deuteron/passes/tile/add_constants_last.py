"""Adds constants last, so that sums which differ by one have the rest in common.

    %a = "arith.addi"(%one, %row)                       %a = "arith.addi"(%row, %i)
    %b = "arith.addi"(%a, %i)                   ->      %b = "arith.addi"(%a, %one)
    %c = "arith.addi"(%row, %i)                         %c = "arith.addi"(%row, %i)

So Inductor writes an element and its neighbour: `1 + 512 * (i // 511) + i % 511`. Merging equal values does the rest. A
sum with another use stays, and one before the loop.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace


class AddConstantsLast(Optimisation):
    """Adds constants last in sums of integers."""

    name = "add-constants-last"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for total in nested_ops(op, arith.AddiOp):
            if any(_constant_and_rest(value, total) for value in total.operands):
                replace(total, [_sum(total.lhs, total.rhs, total)])


def _sum(x: SSAValue, y: SSAValue, total: arith.AddiOp) -> SSAValue:
    """In the place of `total`, which is the sum, or is made of it and constants."""
    builder = Builder.before(total)
    if (parts := _constant_and_rest(x, total)) is not None:
        return builder.value(arith.AddiOp(_sum(parts[1], y, total), parts[0]))
    if (parts := _constant_and_rest(y, total)) is not None:
        return builder.value(arith.AddiOp(_sum(x, parts[1], total), parts[0]))
    return builder.value(arith.AddiOp(x, y))


def _constant_and_rest(value: SSAValue, total: arith.AddiOp) -> tuple[SSAValue, SSAValue] | None:
    """What a value is the sum of, if it serves for this one only and one part is a constant."""
    inner = value.owner
    if not isinstance(inner, arith.AddiOp) or inner.parent is not total.parent or not value.has_one_use():
        return None
    parts = ((inner.lhs, inner.rhs), (inner.rhs, inner.lhs))
    return next((each for each in parts if constant_value(each[0]) is not None), None)
