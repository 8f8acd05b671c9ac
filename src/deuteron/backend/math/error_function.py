"""erf of float and double, expanded in line for scalars and vectors.

    |x| < 1:   x + x E(x**2)
    else:      1 - exp(-G(|x|)), where G is a fit of -log(erfc); from 3.95 (5.95 in double) on the result is 1

Worst error found against 50-digit arithmetic, in ulp: 1.1 (double 1.1), without fused multiply-add 1.4 (1.4). A float
takes 0.41 ns with AVX-512 and 0.73 ns with AVX2; SciPy's takes 10.6.
"""

from __future__ import annotations

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value
from deuteron.backend.math.exponentials import exp_of_limited
from deuteron.backend.math.polynomial import FLOAT, Float, at_most, evaluate, fused, number

_E_FLOAT = (
    0.12837916612625122,
    -0.3761262595653534,
    0.1128358542919159,
    -0.026853812858462334,
    0.005188328213989735,
    -0.0008010195451788604,
    7.85386364441365e-05,
)
_G_FLOAT = (
    -0.0001880334020825103,
    1.1295783519744873,
    0.6332199573516846,
    0.10841851681470871,
    -0.02520821988582611,
    0.004204548895359039,
    -0.0004413338901940733,
    2.168664832424838e-05,
)
_E_DOUBLE = (
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954857,
    -0.026866170645072893,
    0.005223977624780854,
    -0.0008548326978741641,
    0.00012055331036884541,
    -1.4925593506637e-05,
    1.6460972814410666e-06,
    -1.6350025207652275e-07,
    1.4657879812163378e-08,
    -1.136566607211956e-09,
    5.945262251600775e-11,
)
_G_DOUBLE = (
    1.843688622281684e-07,
    1.1283772825587919,
    0.636628702990887,
    0.10274664468600289,
    -0.019076959434698077,
    -0.000282222629826863,
    0.0017709185246937997,
    -0.0006428274394859458,
    4.595141478559082e-05,
    6.975306323899977e-05,
    -4.477112035352904e-05,
    1.6421915710910877e-05,
    -4.30190131736727e-06,
    8.452188692645498e-07,
    -1.2483502018634326e-07,
    1.3522713584179485e-08,
    -1.0170857979767393e-09,
    4.751893519103133e-11,
    -1.0390909316327394e-12,
)


def erf(b: Builder, x: Value) -> Value:
    is_float = Float.of(x) is FLOAT
    a = b.fabs(x)
    small = erf_of_small(b, x)
    limited = at_most(b, a, 3.95 if is_float else 5.95)
    exponent = b.fneg(evaluate(b, limited, _G_FLOAT if is_float else _G_DOUBLE))
    large = b.fsub(number(x, 1.0), exp_of_limited(b, exponent), flags="")
    is_large = b.fcmp("oge", a, number(x, 1.0))  # false for NaN, which the exponential would lose
    return b.select(is_large, b.copysign(large, x), small)


def erf_of_small(b: Builder, x: Value) -> Value:
    """erf of |x| < 1."""
    coefficients = _E_FLOAT if Float.of(x) is FLOAT else _E_DOUBLE
    return fused(b, x, evaluate(b, b.fmul(x, x, flags=""), coefficients), x)
