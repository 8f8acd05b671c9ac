"""lgamma, tgamma and the modified Bessel functions i0 and i1 of float.

    lgamma(x)   (x - 1) (x - 2) R(x - 2), of 1 + x less log(x) where x < 1
                from 3 on Stirling's (x - 1/2) (log x - 1) + log(2 pi / e) / 2 + S(x**-2) / x, as a sum of two floats
    tgamma(x)   1 / Q(z), where Q is 1 / gamma(2 + z), |z| < 1/2, and factors on the way there;  from 3 on e**lgamma(x)
    i0(x)       A(x**2),  from 8 on e**x / sqrt(x) B(1 / x)

Negative arguments are reflected: gamma(-a) = -pi / (a sin(pi a) gamma(a)).
"""

from __future__ import annotations

import math

from deuteron.backend.cuda.instructions.float_exponentials import exponential
from deuteron.backend.cuda.instructions.float_functions import (
    instruction,
    reciprocal,
)
from deuteron.backend.cuda.instructions.float_logarithms import log
from deuteron.backend.cuda.instructions.float_powers import exp2_of_product, log2_pair
from deuteron.backend.math.extern.angle import sinpi
from deuteron.backend.math.extern.shared import branch
from deuteron.backend.math.logarithms import LOG2_E_FLOAT
from deuteron.backend.math.number import (
    Function,
    Number,
    downward,
    fused,
    intrinsic,
    magnitude,
    polynomial,
    ratio,
    where,
    with_sign_of,
)
from deuteron.backend.math.pair import Pair, quick_sum

_LOG_GAMMA = (
    0.42278432846069336,
    -0.10031727701425552,
    0.032965581864118576,
    -0.012384915724396706,
    0.004991802386939526,
    -0.002102345461025834,
    0.0009437521221116185,
    -0.0004249858611728996,
    0.00013117087655700743,
    -5.296392919262871e-05,
    7.798164733685553e-05,
    -3.854667374980636e-05,
)
_STIRLING = (0.0833333283662796, -0.0027772525791078806, 0.0007783676264807582, -0.0004203340213280171)
_INVERSE_GAMMA = (
    1.0,
    -0.42278435826301575,
    -0.233093723654747,
    0.19109225273132324,
    -0.024552887305617332,
    -0.01766102947294712,
    0.008026636205613613,
    -0.0007220493862405419,
    -0.0003729956515599042,
)
_I0 = (
    1.0,
    0.2500000298023224,
    0.015624962747097015,
    0.0004340411687735468,
    6.779569048376288e-06,
    6.79915146406529e-08,
    4.627593308548228e-10,
    2.6271352714796192e-12,
    5.880471602687882e-15,
    5.691554509269526e-17,
)
_I0_LARGE = (
    0.3989422917366028,
    0.049864448606967926,
    0.02819950319826603,
    0.027452897280454636,
    0.04147694259881973,
    0.21696631610393524,
)
_I1 = (
    0.5,
    0.0625,
    0.002604165580123663,
    5.425399649539031e-05,
    6.780774697290326e-07,
    5.6591664687744014e-09,
    3.327172565237291e-11,
    1.6024276361121387e-13,
    3.646275402906994e-16,
    2.6967291517019967e-18,
)
_I1_LARGE = (
    0.3989422917366028,
    -0.14960813522338867,
    -0.04641346633434296,
    -0.04970920458436012,
    0.04185976833105087,
    -0.5548073649406433,
)
_LN2 = (0.6931471824645996, -1.904654323148236e-09)
_HALF_LOG = (0.4189385175704956, 1.563417661998301e-08)  # log(2 pi / e) / 2
_STIRLING_FROM, _BESSEL_LARGE = 3.0, 8.0
_LARGEST = 4.0850031e36  # of which lgamma is finite
_MOST_GAMMA = 60.0  # of which gamma is infinite, and its inverse, over a number, zero
_TINY = 2.0**-30  # of minus that lgamma is the same
_MOST_BESSEL = 92.5  # of which both are infinite


def lgamma(x: Number) -> Number:
    size = magnitude(x)
    is_small = size < 1.0
    logarithm = _log(size)
    far = _stirling(size, logarithm)
    y = where(size < _STIRLING_FROM, _log_gamma_near(size, is_small), far.total)
    usual = where(is_small, y - logarithm.high, y)
    usual = where(size.equals(0.0) | (size > _LARGEST), math.inf, usual)
    usual = branch(x < 0.0, lambda: _reflected_log(size, is_small, y, usual), lambda: usual)
    return where(x.is_nan(), x, usual)


def tgamma(x: Number) -> Number:
    size = magnitude(x)
    return branch(size < _STIRLING_FROM, lambda: _gamma_near(x, size), lambda: _gamma_far(x, size))


def i0(x: Number) -> Number:
    size = magnitude(x)
    return branch(size < _BESSEL_LARGE, lambda: polynomial(x * x, _I0), lambda: _bessel_far(size, _I0_LARGE))


def i1(x: Number) -> Number:
    size = magnitude(x)
    return branch(
        size < _BESSEL_LARGE,
        lambda: x * polynomial(x * x, _I1),
        lambda: with_sign_of(_bessel_far(size, _I1_LARGE), x),
    )


def _log(size: Number) -> Pair:
    return log2_pair(size) * Pair(*map(size.number, _LN2))


def _log_gamma_near(size: Number, is_small: Number) -> Number:
    """Of 1 + size where that is small."""
    above_two, above_one = size - where(is_small, size.number(1.0), 2.0), where(is_small, size, size - 1.0)
    return fused(above_two * above_one, polynomial(above_two, _LOG_GAMMA), 0.0)  # not a zero of the other sign


def _stirling(size: Number, logarithm: Pair) -> Pair:
    inverse = reciprocal(size)
    rest = fused(polynomial(inverse * inverse, _STIRLING), inverse, _HALF_LOG[0])
    less = quick_sum(logarithm.high, logarithm.high.number(-1.0))
    product = Pair(less.high, less.low + logarithm.low).times(size - 0.5)
    return Pair(product.high, product.low + _HALF_LOG[1] + rest)


def _reflected_log(size: Number, is_small: Number, y: Number, usual: Number) -> Number:
    """log(pi / (a |sin(pi a)|)) less lgamma(a), or less that of 1 + a without a."""
    product = magnitude(sinpi(size)) * where(is_small, 1.0, size)
    reflected = log(ratio(math.pi, product)) - y
    reflected = where(downward(size).equals(size), math.inf, reflected)
    return where(size < _TINY, usual, reflected)


def _gamma_near(x: Number, size: Number) -> Number:
    """1 / gamma(a) is 1 / gamma(2 + z) times `above` over `below`; a is the number from -1/2 on, else its size."""
    is_reflected = x < -0.5
    a = where(is_reflected, size, x)
    whole = downward(a + 0.5)
    above = where(whole < 1.0, a * (a + 1.0), where(whole < 2.0, a, 1.0))
    below = where(whole > 2.0, a - 1.0, 1.0)
    above = above * polynomial(a - whole, _INVERSE_GAMMA)
    y = ratio(below, above * 2.0**24) * 2.0**24  # may be subnormal where gamma is finite
    y = where(size.equals(0.0), with_sign_of(x.number(math.inf), x), y)
    return branch(is_reflected, lambda: -ratio(above * math.pi, below * size * sinpi(size)), lambda: y)


def _gamma_far(x: Number, size: Number) -> Number:
    inside = intrinsic("llvm.minimum", size, size.number(_MOST_GAMMA))
    logarithm = _stirling(inside, _log(inside))
    log2_e = [with_sign_of(size.number(part), x) for part in LOG2_E_FLOAT]
    factor = branch(x < 0.0, lambda: -ratio(math.pi, size * sinpi(size)), lambda: size.number(1.0))
    return exp2_of_product(logarithm, Pair(*log2_e), factor)


def _bessel_far(size: Number, coefficients: tuple[float, ...]) -> Number:
    inside = intrinsic("llvm.minimum", size, size.number(_MOST_BESSEL))
    root = instruction("rsqrt.approx.ftz.f", inside)
    return exponential(inside).times(polynomial(root * root, coefficients) * root, -8) * 2.0**8


FUNCTIONS: dict[str, Function] = {
    "lgammaf": lgamma,
    "tgammaf": tgamma,
    "cyl_bessel_i0f": i0,
    "cyl_bessel_i1f": i1,
}
