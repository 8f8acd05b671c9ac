"""erfc, erfcx, normcdf, and the inverses of the error functions, of float.

    erfcx(x) = P(x / (x + 2)) / (x + 2) for x >= 0,  erfc(x) = e**(-x**2) erfcx(x)
    l = -log2((1 - x) (1 + x)),  erfinv(x) = x C(l), from 5 on T(sqrt l), of erfcinv from 6 on sqrt(l) F(1 / sqrt l)

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
_CENTRAL = (  # of l - 1/2, l <= 6
    0.9679251313209534,
    0.16577281057834625,
    0.004347824025899172,
    -0.0008175086113624275,
    -1.1194294529559556e-05,
    8.344552043126896e-06,
    -2.7608876962403883e-07,
    -4.725029256746893e-08,
    3.31534066866368e-09,
)
_TAIL = (  # of sqrt(l) - 3.7, 5 <= l <= 23.1
    2.913510799407959,
    0.8356339931488037,
    0.004196520894765854,
    -0.001782525097951293,
    0.000508529192302376,
    -9.638282062951475e-05,
    -8.467248335364275e-06,
    1.400786732119741e-05,
    -2.223352566943504e-06,
)
_FAR_TAIL = (  # of 1 / sqrt(l) - 0.25, 6 <= l <= 150
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
_CENTRAL_MIDDLE, _TAIL_MIDDLE, _FAR_MIDDLE = 0.5, 3.7, 0.25
_TAIL_FROM, _FAR_TAIL_FROM = 5.0, 6.0  # the error of the middle grows
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
    return _inverse(x, lost, _TAIL_FROM, lambda: _tail(lost))


def erfcinv(x: Number) -> Number:
    return _inverse_complement(x, 1.0)


def normcdfinv(x: Number) -> Number:
    return _inverse_complement(x + x, -math.sqrt(2.0))


def _inverse_complement(x: Number, factor: float) -> Number:
    lost = _lost(x * (2.0 - x))
    y = _inverse(1.0 - x, lost, _FAR_TAIL_FROM, lambda: _far_tail(lost))
    return y if factor == 1.0 else y * factor


def _inverse(x: Number, lost: Number, tail_from: float, tail: Callable[[], Number]) -> Number:
    """x times the middle's polynomial, which is NaN where there is no inverse, or the tail, of few numbers."""
    return branch(
        lost > tail_from,
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
