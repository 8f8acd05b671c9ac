"""Bessel functions, in double.

|x| < 8        polynomials on a few intervals, each times x - z for the zeros z that are in it, so that the error is
               relative to the result; y near 0 with the logarithm
beyond         Hankel's: sqrt(2 / (pi x)) (P cos(x - (2 n + 1) pi/4) - Q sin(...)), P and x Q polynomials in x**-2
jn, yn         by recurrence, upwards where that is stable, else downwards, divided by what the sum should be
i0, i1         polynomials in x**2; beyond 8 e**x / sqrt(x) times one in 1 / x - 1 / 16
"""

from __future__ import annotations

import math

from deuteron.backend.llvm.types import const
from deuteron.backend.math import coefficients_special as table
from deuteron.backend.math import logarithms, trigonometry
from deuteron.backend.math.extern.exponential import Power, exponential
from deuteron.backend.math.extern.shared import branch, repeat, shared
from deuteron.backend.math.number import (
    Number,
    any_of,
    magnitude,
    polynomial,
    smaller,
    square_root,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import Pair

# Zeros, as sums of two.
_J0_ZEROS = ((2.404825557695773, -1.176691651530894e-16), (5.520078110286311, 8.088597146146722e-17))
_J1_ZEROS = ((3.8317059702075125, -1.5269184090088067e-16), (7.015586669815619, -9.414165653410389e-17))
_Y0_ZEROS = (
    (0.8935769662791675, 2.6596231539720385e-17),
    (3.957678419314858, -1.0764340697562706e-16),
    (7.086051060301773, -8.835285723085408e-17),
)
_Y1_ZEROS = ((2.197141326031017, -4.8259835876454966e-17), (5.429681040794135, 4.162514026670377e-16))
_HANKEL = ((table.HANKEL_P0, table.HANKEL_Q0), (table.HANKEL_P1, table.HANKEL_Q1))
_SCALE, _LARGE = 1e-150, 1e150  # for a downward recurrence, which begins with anything


def _j0(x: Number) -> Number:
    size = magnitude(x)
    near = _from(size, _J0_ZEROS[0]) * (size + _J0_ZEROS[0][0])
    return branch(
        size < 3.2,
        lambda: near * polynomial(size * size - 5.12, table.J0_NEAR),
        lambda: branch(
            size < 8.0,
            lambda: _from(size, _J0_ZEROS[1]) * polynomial(size - 5.6, table.J0_MIDDLE),
            lambda: _hankel(size, 0)[0],
        ),
    )


def _j1(x: Number) -> Number:
    size = magnitude(x)
    zeros = _from(size, _J1_ZEROS[0]) * _from(size, _J1_ZEROS[1])
    y = branch(
        size < 3.2,
        lambda: size * polynomial(size * size - 5.12, table.J1_NEAR),
        lambda: branch(
            size < 8.0,
            lambda: zeros * polynomial(size - 5.6, table.J1_MIDDLE),
            lambda: _hankel(size, 1)[0],
        ),
    )
    return where(x < 0.0, -y, where(x.equals(0.0), x, y))


def _y0(x: Number) -> Number:
    y = branch(
        x < 2.2,
        lambda: branch(
            x < 0.7,
            lambda: _log(x) * j0(x) * (2 / math.pi) + polynomial(x * x, table.Y0_NEAR),
            lambda: branch(
                x < 1.2,
                lambda: _from(x, _Y0_ZEROS[0]) * polynomial(x - 0.95, table.Y0_FIRST),
                lambda: polynomial(x - 1.7, table.Y0_SECOND),
            ),
        ),
        lambda: branch(
            x < 5.2,
            lambda: _from(x, _Y0_ZEROS[1]) * polynomial(x - 3.7, table.Y0_THIRD),
            lambda: branch(
                x < 8.0,
                lambda: _from(x, _Y0_ZEROS[2]) * polynomial(x - 6.6, table.Y0_FOURTH),
                lambda: _hankel(x, 0)[1],
            ),
        ),
    )
    return _of_second_kind(x, y)


def _y1(x: Number) -> Number:
    y = branch(
        x < 3.0,
        lambda: branch(
            x < 1.2,
            lambda: (_log(x) * j1(x) - 1.0 / x) * (2 / math.pi) + x * polynomial(x * x, table.Y1_NEAR),
            lambda: _from(x, _Y1_ZEROS[0]) * polynomial(x - 2.1, table.Y1_FIRST),
        ),
        lambda: branch(
            x < 5.6,
            lambda: _from(x, _Y1_ZEROS[1]) * polynomial(x - 4.3, table.Y1_SECOND),
            lambda: branch(x < 8.0, lambda: polynomial(x - 6.8, table.Y1_THIRD), lambda: _hankel(x, 1)[1]),
        ),
    )
    return _of_second_kind(x, y)


def _jn(n: Number, x: Number) -> Number:
    size = magnitude(x)
    order = n.sign_extend("i64")
    is_zero = _is_far_below(size, n)
    inside = where(is_zero, 0, order)
    y = branch(
        n.to_float("double") < size,
        lambda: _upwards(inside, size, j0(size), j1(size)),
        lambda: _downwards(inside, size),
    )
    y = where(size < 1e-90, _first_term(n, size), y)
    y = where(is_zero | size.equals(math.inf), 0.0, y)
    y = where((x.bits() < 0) & (n & 1).equals(1), -y, y)
    return where(any_of(n < 0, x.is_nan()), math.nan, y)


def _yn(n: Number, x: Number) -> Number:
    is_infinite = _is_far_below(x, n)
    inside = where((x > 0.0) & (is_infinite ^ True), n.sign_extend("i64"), 0)
    y = where(is_infinite, -math.inf, _upwards(inside, x, y0(x), y1(x)))
    y = _of_second_kind(x, y)
    return where(any_of(n < 0, x.is_nan()), math.nan, y)


def _first_term(n: Number, x: Number) -> Number:
    """(x/2)**n / n! of a number so small that the fourth power is 0."""
    half = x * 0.5
    second = where(n.equals(2), half * half * 0.5, where(n.equals(3), half * half * half * (1 / 6), 0.0))
    return where(n.equals(0), 1.0, where(n.equals(1), half, second))


def _is_far_below(x: Number, n: Number) -> Number:
    """The order: jn is then less than the smallest number, yn beyond the largest."""
    return (n > 2000) & (x * 2.0 < n.to_float("double"))


def _upwards(n: Number, x: Number, first: Number, second: Number) -> Number:
    """From orders 0 and 1: the next is 2 k / x times this one less the one before; an infinite one stays."""

    def step(k: Number, before: Number, current: Number) -> list[Number]:
        following = current * (k.to_float("double") * 2.0 / x) - before
        return [current, where(magnitude(current).equals(math.inf), current, following)]

    results = repeat(_i64(n, 1), n, 1, [first, second], step)
    return where(n.equals(0), first, results[1])


def _downwards(n: Number, x: Number) -> Number:
    """From far above n, where all of them are almost 0; J0 + 2 J2 + 2 J4 ... is 1."""
    top = n + (square_root(n.to_float("double") * 160.0)).to_integer("i64") + 40
    top = top + (top & 1)
    zero = x.number(0.0)

    def step(i: Number, above: Number, current: Number, total: Number, found: Number) -> list[Number]:
        k = top - i
        below = current * (k.to_float("double") * 2.0 / x) - above
        is_large = magnitude(below) > _LARGE
        scaled = [where(is_large, v * _SCALE, v) for v in (current, below, total, found)]
        is_even = (k & 1).equals(1)
        total = where(is_even, scaled[2] + scaled[1], scaled[2])
        return [scaled[0], scaled[1], total, where(k.equals(n + 1), scaled[1], scaled[3])]

    _, last, total, found = repeat(_i64(n, 0), top, 1, [zero, x.number(_SCALE), zero, zero], step)
    return found / (total + total - last)


def _i64(like: Number, value: int) -> Number:
    return like.make(const("i64", value))


def _i0(x: Number) -> Number:
    size = magnitude(x)
    return branch(size < 8.0, lambda: polynomial(size * size, table.I0_NEAR), lambda: _grown(size, table.I0_FAR))


def _i1(x: Number) -> Number:
    size = magnitude(x)
    y = branch(size < 8.0, lambda: size * polynomial(size * size, table.I1_NEAR), lambda: _grown(size, table.I1_FAR))
    return with_sign_of(y, x)


def _grown(size: Number, coefficients: dict[str, tuple[float, ...]]) -> Number:
    size = smaller(size, 750.0)
    power = exponential(size)
    factor = polynomial(1.0 / size - 0.0625, coefficients) / square_root(size)
    return Power(Pair(power.mantissa.high * factor, power.mantissa.low * factor), power.exponent).value


def _from(x: Number, zero: tuple[float, float]) -> Number:
    """x less a zero."""
    return (x - zero[0]) - zero[1]


def _hankel(x: Number, order: int) -> tuple[Number, Number]:
    """J and Y of a large number; 0 of infinity."""
    t = 1.0 / (x * x)
    p, q = polynomial(t, _HANKEL[order][0]), polynomial(t, _HANKEL[order][1]) / x
    sine, cosine = (x.make(emit(x.b, x.value)) for emit in (trigonometry.sin, trigonometry.cos))
    sine, cosine = (sine - cosine, sine + cosine) if order == 0 else (-(sine + cosine), sine - cosine)
    scale = math.sqrt(1.0 / math.pi) / square_root(x)
    first, second = scale * (p * cosine - q * sine), scale * (p * sine + q * cosine)
    return tuple(where(x.equals(math.inf), 0.0, y) for y in (first, second))


def _of_second_kind(x: Number, y: Number) -> Number:
    return where(x < 0.0, math.nan, where(x.equals(0.0), -math.inf, y))


def _log(x: Number) -> Number:
    return x.make(logarithms.log(x.b, x.value))


j0, j1, y0, y1 = shared("j0", _j0), shared("j1", _j1), shared("y0", _y0), shared("y1", _y1)
jn, yn = shared("jn", _jn, by_lane=True), shared("yn", _yn, by_lane=True)
i0, i1 = shared("cyl_bessel_i0", _i0), shared("cyl_bessel_i1", _i1)
