"""Quotients and remainders by numbers in the polynomials of tiles, as atoms of their own.

    x = pid * 64 + arange(0, 64)                         64 * pid + i0
    x // 4096                                            q, the atom of what it divides and by what
    x % 4096                                             x - 4096 * q
    x // 64 % 32                                         q64 - 32 * q2048, since x // 64 // 32 is x // 2048
    (x + 8192) // 4096 // 2                              x // 8192 + 1
    x // 64                                              pid

So what is the same is one polynomial, however it is written: 4096 * (x // 4096) + x % 4096 is x. What is divided has to
be certainly not negative, and not to overflow on the way, in the grids that the function is launched with (ranges.py):
then both ways of rounding are one. What may be negative, or is divided by less than 1, is as in `tile_polynomials`.

An atom of a quotient is one of a tile where its dividend has coordinates: who asks here asks `quotient_of` each atom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial, coordinate
from deuteron.analysis.addresses.tile_polynomials import RULES, Rule, TilePolynomials
from deuteron.analysis.axis.ranges import relies_on
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.shape import ExpandDimsOp, TransOp
from deuteron.ir.types import is_tile, shape_of


@dataclass(frozen=True)
class Quotient:
    """A polynomial over a positive number, rounded down."""

    dividend: Polynomial
    divisor: int


class TileQuotients(TilePolynomials):
    """The polynomials of a function's values, with atoms for quotients."""

    def __init__(self, func: FuncOp) -> None:
        super().__init__()
        self._func = func
        self._quotients: dict[Atom, Quotient] = {}
        self._asked: set[SSAValue] = set()

    def quotient_of(self, atom: Atom) -> Quotient | None:
        return self._quotients.get(atom)

    def is_natural(self, value: SSAValue) -> bool:
        """Whether it is certainly not negative, and just what its polynomial says, whatever divides in it. That is not
        known of what a loop makes of its own quotient.
        """
        if value in self._asked:
            return False
        self._asked.add(value)
        is_exact = not self.wraps_in(value)
        self._asked.remove(value)
        return is_exact and relies_on(lambda most: most(value) is not None, self._func)

    def over(self, dividend: Polynomial, divisor: int, value: SSAValue) -> Polynomial:
        """A polynomial over a number, rounded down: the value, or a part of it."""
        dividend, divisor = self._of_one_division(dividend, divisor)
        whole, rest = dividend.split(lambda monomial: dividend.factor_of(monomial) % divisor == 0)
        number = rest.factor_of(()) // divisor
        whole = whole.over(Polynomial.constant(divisor)) + Polynomial.constant(number)
        rest = _without_low_part(rest - Polynomial.constant(number * divisor), divisor, value)
        if rest.number is not None:
            return whole
        unit = gcd(divisor, rest.content)
        if unit > 1:
            return whole + self.over(rest.over(Polynomial.constant(unit)), divisor // unit, value)
        return whole + Polynomial.of(self._atom(Quotient(rest, divisor), value))

    def with_axes(self, op: ExpandDimsOp | TransOp, source: Polynomial) -> Polynomial:
        return source.renamed(lambda atom: self._with_axes(op, atom))

    def _with_axes(self, op: ExpandDimsOp | TransOp, atom: Atom) -> Atom:
        quotient = self.quotient_of(atom)
        if quotient is None:
            return atom if atom.axis is None else coordinate(op.result_axis(atom.axis))
        return self._atom(Quotient(self.with_axes(op, quotient.dividend), quotient.divisor), atom.value)

    def _of_one_division(self, dividend: Polynomial, divisor: int) -> tuple[Polynomial, int]:
        """(a + x // 64) // 32 is (64 * a + x) // 2048, whatever a is."""
        quotients = [atom for atom in dividend.atoms if self.quotient_of(atom) is not None]
        if len(quotients) != 1 or dividend.factor_of((quotients[0],)) != 1:
            return dividend, divisor
        rest, inner = dividend - Polynomial.of(quotients[0]), self.quotient_of(quotients[0])
        if quotients[0] in rest.atoms:
            return dividend, divisor
        whole = rest * Polynomial.constant(inner.divisor) + inner.dividend
        return self._of_one_division(whole, divisor * inner.divisor)

    def _atom(self, quotient: Quotient, value: SSAValue) -> Atom:
        atom = self._atom_of(quotient, value)
        self._quotients[atom] = quotient
        return atom

    @property
    def _rules(self) -> Mapping[type[Operation], Rule]:
        return _RULES


def _without_low_part(dividend: Polynomial, divisor: int, value: SSAValue) -> Polynomial:
    """Without coordinates, and a number, that are never as much as what divides all else, and the divisor:
    (64 * pid + i0) // 4096 is 64 * pid // 4096 for the 64 of an i0.
    """
    shape = shape_of(value.type) if is_tile(value.type) else ()
    steps = sorted((factor, m) for m, factor in dividend if len(m) == 1 and m[0].axis is not None)
    for count in range(len(steps), 0, -1):
        low = Polynomial({monomial: factor for factor, monomial in steps[:count]})
        number, others = (dividend - low).split(lambda monomial: not monomial)
        unit = gcd(divisor, others.content)
        rest = number.factor_of(()) % unit
        most = sum(factor * (shape[axis.axis] - 1) for (axis,), factor in low) + rest
        if steps[0][0] > 0 and most < unit:
            return dividend - low - Polynomial.constant(rest)
    return dividend


def _divided(combine: Callable[[Polynomial, Polynomial, int], Polynomial]) -> Rule:
    """Of what is divided, the quotient and the divisor."""

    def rule(known: TileQuotients, op: arith.DivSIOp | arith.RemSIOp) -> Polynomial | None:
        dividend, divisor = known.of(op.lhs), constant_value(op.rhs)
        if dividend is None or divisor is None or divisor < 1 or not known.is_natural(op.lhs):
            return _otherwise(known, op)
        return combine(dividend, known.over(dividend, divisor, op.result), divisor)

    return rule


def _otherwise(known: TileQuotients, op: Operation) -> Polynomial | None:
    rule = RULES.get(type(op))
    return None if rule is None else rule(known, op)


_RULES: Mapping[type[Operation], Rule] = {
    **RULES,
    arith.DivSIOp: _divided(lambda dividend, quotient, divisor: quotient),
    arith.RemSIOp: _divided(lambda dividend, quotient, divisor: dividend - quotient * Polynomial.constant(divisor)),
}
