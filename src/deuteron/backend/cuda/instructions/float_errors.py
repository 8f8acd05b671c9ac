"""erfc, erfcx, normcdf, and the inverses of the error functions, of float.

    erfcx(x) = P(x / (x + 2)) / (x + 2) for x >= 0,  erfc(x) = e**(-x**2) erfcx(x)
    l = -log2((1 - x) (1 + x)),  erfinv(x) = x C(l), from l = 7.5 on T(sqrt l), for erfcinv sqrt(l) F(1 / sqrt l)

x**2 is taken as a sum of two floats, since an error of it counts in full.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from deuteron.backend.cuda.instructions.float_exponentials import exponential
from deuteron.backend.cuda.instructions.float_functions import instruction, reciprocal
from deuteron.backend.math.extern.shared import branch
from deuteron.backend.math.number import (
    Function,
    Number,
    fused,
    intrinsic,
    magnitude,
    polynomial,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import two_product

_SCALED = (  # of x / (x + 2) - 1/2
    1.0215827226638794,
    -1.374321460723877,
    1.1178858280181885,
    -0.29153531789779663,
    -0.3440723121166229,
    0.20741362869739532,
    0.196088045835495,
    -0.10936156660318375,
    -0.1552739292383194,
    0.035909608006477356,
    0.08992209285497665,
)
_CENTRAL = (  # of l - 1/2
    0.9679251313209534,
    0.16577288508415222,
    0.004347705282270908,
    -0.0008177735726349056,
    -1.0493108675291296e-05,
    7.74332420405699e-06,
    -2.1316402865068085e-08,
    -1.0492582447341192e-07,
    9.993509131334122e-09,
    -3.109268675860477e-10,
)
_TAIL = (  # of sqrt(l) - 3.9, l <= 23.04
    3.08079195022583,
    0.8371143937110901,
    0.003240954363718629,
    -0.001415383885614574,
    0.000412974797654897,
    -9.622413199394941e-05,
    4.658378202293534e-06,
    1.14126969492645e-05,
)
_FAR_TAIL = (  # of 1 / sqrt(l) - 0.25, l <= 150
    0.7911336421966553,
    -0.18635191023349762,
    0.18168506026268005,
    0.5644259452819824,
    -1.3648558855056763,
    -0.4393806457519531,
    -7.647277355194092,
    27.734703063964844,
    151.6947479248047,
    -104.2276382446289,
    -1996.1640625,
)
_CENTRAL_MIDDLE, _TAIL_MIDDLE, _FAR_MIDDLE, _LAST_CENTRAL = 0.5, 3.9, 0.25, 7.5
_SCALE = 24  # powers of two, by which a subnormal result is a normal number


def erfc(x: Number) -> Number:
    size = _at_most(magnitude(x), 10.0625)
    square = two_product(size, size)
    y = exponential(-square.high, -square.low).times(_erfcx(size, 1.0), _SCALE) * 2.0**-_SCALE
    return where(x < 0.0, 2.0 - y, y)


def normcdf(x: Number) -> Number:
    """erfc(-x / sqrt(2)) / 2, with the Gaussian of x itself."""
    size = _at_most(magnitude(x), 14.25)
    square = two_product(size, size)
    gaussian = exponential(square.high * -0.5, square.low * -0.5)
    y = gaussian.times(_erfcx(size * math.sqrt(0.5), 1.0), _SCALE) * 2.0 ** (-_SCALE - 1)
    return where(x > 0.0, 1.0 - y, y)


def erfcx(x: Number) -> Number:
    """Of negative numbers 2 e**(x**2) - erfcx(-x)."""
    size = magnitude(x)
    scale = where(size > 2.0**64, size.number(2.0**-64), 1.0)
    y = where(size < math.inf, _erfcx(size * scale, scale) * scale, reciprocal(size))
    inside = _at_most(size, 9.5)
    square = two_product(inside, inside)
    grown = exponential(square.high, square.low).value(-_SCALE) * 2.0 ** (_SCALE + 1)
    return where(x < 0.0, grown - y, y)


def erfinv(x: Number) -> Number:
    lost = _lost(fused(-x, x, 1.0))
    return _inverse(x, lost, lambda: _tail(lost))


def erfcinv(x: Number) -> Number:
    return _inverse_complement(x, 1.0)


def normcdfinv(x: Number) -> Number:
    return _inverse_complement(x + x, -math.sqrt(2.0))


def _inverse_complement(x: Number, factor: float) -> Number:
    lost = _lost(x * (2.0 - x))
    y = _inverse(1.0 - x, lost, lambda: _far_tail(lost))
    return y if factor == 1.0 else y * factor


def _inverse(x: Number, lost: Number, tail: Callable[[], Number]) -> Number:
    """x times the middle's polynomial, which is NaN where there is no inverse, or the tail, of few numbers."""
    return branch(
        lost > _LAST_CENTRAL,
        lambda: with_sign_of(where(lost < math.inf, tail(), lost), x),
        lambda: x * polynomial(lost - _CENTRAL_MIDDLE, _CENTRAL),
    )


def _tail(lost: Number) -> Number:
    """With what the root lacks, times the slope, which is the same everywhere."""
    inverse = instruction("rsqrt.approx.f", lost)
    root = lost * inverse
    rest = fused(-root, root, lost) * inverse
    return fused(rest, _TAIL[1] * 0.5, polynomial(root - _TAIL_MIDDLE, _TAIL))


def _far_tail(lost: Number) -> Number:
    inverse = instruction("rsqrt.approx.f", lost)
    return polynomial(inverse - _FAR_MIDDLE, _FAR_TAIL) * (lost * inverse)


def _lost(product: Number) -> Number:
    """How many bits smaller than 1 it is."""
    return -instruction("lg2.approx.f", product)


def _at_most(size: Number, limit: float) -> Number:
    """NaN where it is."""
    return intrinsic("llvm.minimum", size, size.number(limit))


def _erfcx(size: Number, scale: Number | float) -> Number:
    """Of the number over the scale, times that: what the reciprocal lacks is made good by the polynomial's argument."""
    inverse = reciprocal(fused(size.number(2.0), scale, size))
    return polynomial(fused(size, inverse, -0.5), _SCALED) * inverse


FUNCTIONS: dict[str, Function] = {
    "erfcf": erfc,
    "erfcxf": erfcx,
    "normcdff": normcdf,
    "erfinvf": erfinv,
    "erfcinvf": erfcinv,
    "normcdfinvf": normcdfinv,
}
