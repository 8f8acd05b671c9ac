"""Rules of axis info for what is likely of numbers that are not known: that they are large.

    i % n           counts up, but where it begins anew                  contiguity of i
    i // n          is the same for many neighbours                      constancy of as many
    min(i, n - 1)   counts up                                            contiguity of i
    where(m, i, 0)  counts up where the mask is on                       contiguity of i
    i * 2           is near enough                                       contiguity of i

Pixels `i` of an image of unknown width `n`, as in a convolution, are likely to be neighbours in memory where they are
in the tile, and nothing is known. Lanes go along the dimension of which that holds; no access is widened by it.
"""

from __future__ import annotations

from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation

from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.analysis.axis.axis_rules import RULES, Rule
from deuteron.ir.arith import SelectOp

FEW = 16  # elements from one to the next: of 16 bits they are a sector of memory


def _counts_up(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    """As its first operand, or its second, where the other one is the same for all."""
    known, (lhs, rhs) = RULES[type(op)](op, operands), operands
    each = zip(known.contiguity, lhs.contiguity, lhs.constancy, rhs.contiguity, rhs.constancy, strict=True)
    return known._replace(contiguity=tuple(max(k, gcd(a, d), gcd(b, c)) for k, a, b, c, d in each))


def _remainder(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    return RULES[type(op)](op, operands) if operands[1].constant is not None else _counts_up(op, operands)


def _quotient(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    known, (lhs, rhs) = RULES[type(op)](op, operands), operands
    if rhs.constant is not None:
        return known
    each = zip(known.constancy, lhs.contiguity, rhs.constancy, strict=True)
    return known._replace(constancy=tuple(max(k, gcd(a, b)) for k, a, b in each))


def _product(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    known, (lhs, rhs) = RULES[type(op)](op, operands), operands
    factors = [rhs.constant, lhs.constant]
    near = [info for info, factor in zip(operands, factors, strict=True) if factor is not None and abs(factor) <= FEW]
    return known._replace(contiguity=near[0].contiguity) if near else known


def _selected(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    known, (_, *values) = RULES[type(op)](op, operands), operands
    return known._replace(contiguity=tuple(map(max, *(value.contiguity for value in values))))


LIKELY_RULES: dict[type[Operation], Rule] = {
    **RULES,
    **dict.fromkeys((arith.RemSIOp, arith.RemUIOp), _remainder),
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp), _quotient),
    **dict.fromkeys((arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp), _counts_up),
    arith.MuliOp: _product,
    SelectOp: _selected,
}
