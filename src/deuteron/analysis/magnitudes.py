"""How large and how small the magnitudes of floats may be, by the ops that give them.

    %n = arith.sitofp %i : i32 to f32        multiples of 1 below 2**64
    %s = math.sqrt %v : f32                  multiples of 2**-98 below 2**64: the root of the least float is 2**-74.5
    %d = arith.addf %s, %n                   multiples of 2**-98 below 2**65
    %m = arith.mulf %s, %s                   multiples of 2**-149, as all floats are, below 2**128
    %h = arith.extf %x : f16 to f32          multiples of 2**-24 below 2**16
    %p = tt.load %q : f32                    not known

Of multiples sums and products are as well, whether they are rounded or fused. Infinities and NaN are not counted: the
root of one is one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, isfinite
from typing import NamedTuple

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float16Type
from xdsl.ir import Attribute, SSAValue

from deuteron.ir.arith import SelectOp, constant_value
from deuteron.ir.casts import SIToFPOp, UIToFPOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.types import element_type_of, is_fp8

# Ops from a value to what it is made of. A divisor is made of few; a sum of a thousand has not to be looked through.
FARTHEST = 8
OF_ALL_FLOATS, SMALLEST_NORMAL = -149, -126  # exponents of the least f32, and of the least that is normal


class Magnitudes(NamedTuple):
    """Multiples of 2**quantum, 0 among them, whose magnitudes are below 2**power."""

    quantum: int
    power: int

    @property
    def are_normal(self) -> bool:
        """Or zero."""
        return self.quantum >= SMALLEST_NORMAL

    def plus(self, other: Magnitudes) -> Magnitudes:
        either = self.or_(other)
        return Magnitudes(either.quantum, either.power + 1)

    def times(self, other: Magnitudes) -> Magnitudes:
        return Magnitudes(max(self.quantum + other.quantum, OF_ALL_FLOATS), self.power + other.power)

    def or_(self, other: Magnitudes) -> Magnitudes:
        return Magnitudes(min(self.quantum, other.quantum), max(self.power, other.power))


NARROW, INTEGER = Magnitudes(-24, 16), Magnitudes(0, 64)
# Of 24 bits, the last 23 powers below the first.
ROOT, INVERSE_ROOT = Magnitudes(-75 - 23, 64), Magnitudes(-65 - 23, 75)
_KNOWN = {
    **dict.fromkeys((SIToFPOp, UIToFPOp), INTEGER),
    math.SqrtOp: ROOT,
    math.RsqrtOp: INVERSE_ROOT,
}
_COMBINED: dict[type, Callable[..., Magnitudes]] = {
    **dict.fromkeys((arith.AddfOp, arith.SubfOp), Magnitudes.plus),
    arith.MulfOp: Magnitudes.times,
    **dict.fromkeys((arith.MinnumfOp, arith.MaxnumfOp, arith.MinimumfOp, arith.MaximumfOp), Magnitudes.or_),
    SelectOp: Magnitudes.or_,
    **dict.fromkeys((arith.NegfOp, math.AbsFOp, arith.ExtFOp), lambda same: same),
    **dict.fromkeys((BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp), lambda same: same),
}


def magnitudes(value: SSAValue, farthest: int = FARTHEST) -> Magnitudes | None:
    """Those of all finite elements of a float, or of a tile of floats, of 32 bits or less; None: they are not known."""
    number = constant_value(value)
    if number is not None:
        return _of_number(number)
    if _is_narrow(element_type_of(value.type)):
        return NARROW
    op = value.owner
    if type(op) in _KNOWN:
        return _KNOWN[type(op)]
    if type(op) not in _COMBINED or not farthest:
        return None
    made_of = op.operands[1:] if isinstance(op, SelectOp) else op.operands
    known = [magnitudes(one, farthest - 1) for one in made_of]
    return None if None in known else _COMBINED[type(op)](*known)


def _of_number(number: float) -> Magnitudes | None:
    if not isfinite(number):
        return None
    _, denominator = float(number).as_integer_ratio()
    return Magnitudes(1 - denominator.bit_length(), frexp(number)[1])


def _is_narrow(element: Attribute) -> bool:
    return isinstance(element, Float16Type) or is_fp8(element)
