"""log, log10 and log1p of float, and what a number is made of.

    x = 2**e (1 + f),  log x = e ln 2 + (f + f**2 P(f))

lg2.approx has the results of 0, of infinity and of what has no logarithm, for log and log10.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from deuteron.backend.cuda.instructions.float_functions import instruction
from deuteron.backend.math.number import Number, fused, polynomial, where, with_sign_of

_SQRT_HALF, _THREE_QUARTERS, _FOUR = 0x3F3504F3, 0x3F400000, 0x40800000  # their bits
_OF_LOG = (
    -0.49999988079071045,
    0.33333322405815125,
    -0.250015527009964,
    0.2000243067741394,
    -0.16610559821128845,
    0.14171701669692993,
    -0.13218559324741364,
    0.12965582311153412,
    -0.07761575281620026,
)
_OF_LOG1P = (
    -0.5,
    0.3333345055580139,
    -0.25000181794166565,
    0.19990968704223633,
    -0.1664409339427948,
    0.14470063149929047,
    -0.13185498118400574,
    0.10566031187772751,
    -0.045992810279130936,
)
_LN2 = 0.6931471805599453
_LOG10_2, _LOG10_E = (0.3010300099849701, -1.432098883924482e-08), 0.4342944819032518
_LN2_PARTS = (0.693359375, -0.00021219444170128554)  # the first one is added exactly where e is 1


class Parts(NamedTuple):
    """Of a positive number 2**`exponent` times `mantissa`, which is between the roots of 1/2 and 2. `normal` is not
    subnormal, and has the sign of the number.
    """

    exponent: Number
    mantissa: Number
    normal: Number


def split(x: Number) -> Parts:
    is_small = x < x.format.smallest_normal
    normal = where(is_small, x * 2.0**24, x)
    exponent = (normal.bits() - _SQRT_HALF) & -(1 << 23)
    e = fused(exponent.to_float("float"), 2.0**-23, where(is_small, x.number(-24.0), 0.0))
    return Parts(e, (normal.bits() - exponent).as_float("float"), normal)


def log(x: Number) -> Number:
    e, m, normal = split(x)
    f = m - 1.0
    return _of_positive(normal, fused(e, _LN2, fused(f * f, polynomial(f, _OF_LOG), f)))


def log10(x: Number) -> Number:
    """Near 1 e is 0; where it is -1 the first part of log10 2 counts, and so what that lacks."""
    e, m, normal = split(x)
    f = m - 1.0
    y = fused(f * f, polynomial(f, _OF_LOG), f)
    return _of_positive(normal, fused(e, _LOG10_2[0], fused(e, _LOG10_2[1], y * _LOG10_E)))


def log1p(x: Number) -> Number:
    """1 + f is 2**-e x + 2**-e, between 3/4 and 3/2; of a large x 2**-e counts for nothing. Of -1 the polynomial
    overflows, as it should; what is below has no logarithm, as inf - inf is no number.
    """
    total = x + 1.0
    exponent = (total.bits() - _THREE_QUARTERS) & -(1 << 23)
    four = (_FOUR - exponent).as_float("float")  # times 2**-e, which may be subnormal
    f = (x.bits() - exponent).as_float("float") + fused(four, 0.25, -1.0)
    e = exponent.to_float("float") * 2.0**-23
    y = f + fused(f * f, polynomial(f, _OF_LOG1P), e * _LN2_PARTS[1])
    has_finite = (x >= -1.0) & (x < math.inf)
    return where(has_finite, with_sign_of(fused(e, _LN2_PARTS[0], y), x), fused(x, math.inf, math.inf))


def _of_positive(x: Number, y: Number) -> Number:
    return where((x > 0.0) & (x < math.inf), y, instruction("lg2.approx.ftz.f", x))
