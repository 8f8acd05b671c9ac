"""erfcx, normcdf and gamma functions: identities, in fractions; where float64 lost several units; the ends."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from deuteron.interpreter.numerics.gamma_and_error import erfcx, lgamma, normcdf, tgamma


def is_within(value: float, exact: Fraction, ulps: Fraction) -> bool:
    return abs(Fraction(value) - exact) <= ulps * Fraction(math.ulp(value))


# By mpmath, of 60 digits. The first of each is what the C library or Python had wrong by 3 to 9 units.
VALUES = {
    tgamma: [
        (-4.500000000000004, "-6.00196013005038170053366394692925286e-2"),
        (-0.9999999999957877, "-2.37400154312143403190695990625361727e+11"),
        (1e-300, "9.99999999999999974940908164791240942e+299"),
        (171.5, "9.48336756682479933625340546920495159e+307"),
    ],
    lgamma: [
        (1.9999999999999982, "-7.51015845243448450533505688548356622e-16"),
        (-16.00000000000009, "-6.1967126407174770293650078543427089e-1"),
        (1e-5, "1.15129196928958256256173078503221037e+1"),
        (150.25, "6.01261504032499725980535274307849511e+2"),
    ],
    normcdf: [
        (-11.780972450966312, "2.44626678677908450519663124809261186e-32"),
        (-1.5707963267948726, "5.8114982783412289286392510695917399e-2"),
        (3.25, "9.99422974957609232957083080685749111e-1"),
        (-37.5, "4.60535300958195484382796909761089624e-308"),
    ],
    erfcx: [
        (1.0342683280344556, "4.18399201351815961771144183529230141e-1"),
        (9.273417456899416, "6.04917108713768751405803048543830766e-2"),
        (-7.5, "5.37148791187391746778233583452426322e+24"),
        (1e5, "5.6418958351954680777492305908891893e-6"),
        (1e-9, "9.99999998871620833904487355074338149e-1"),
    ],
}


@pytest.mark.parametrize("function", VALUES)
def test_values_are_rounded_once(function):
    wrong = [(x, exact) for x, exact in VALUES[function] if function(x) != float(exact)]
    assert not wrong


def test_gamma_grows_by_its_argument(rng):
    """gamma(x + 1) = x gamma(x), of numbers whose successors are exact."""
    for x in rng.integers(-(2**40) * 20, 2**40 * 20, 100) / 2**40:
        assert is_within(tgamma(x + 1), Fraction(x) * Fraction(tgamma(x)), Fraction(3, 2)), x


def test_wholes_are_factorials():
    assert [tgamma(n) for n in range(1, 100)] == [float(math.factorial(n - 1)) for n in range(1, 100)]


def test_both_tails_add_up_to_one(rng):
    for x in rng.uniform(0, 8, 50):
        assert is_within(normcdf(x), 1 - Fraction(normcdf(-x)), Fraction(3, 4)), x


def test_the_ends():
    inf = math.inf
    assert [erfcx(x) for x in (-inf, -28.0, -0.0, inf)] == [inf, inf, 1.0, 0.0]
    assert [normcdf(x) for x in (-inf, -40.0, 0.0, 40.0, inf)] == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert [tgamma(x) for x in (-0.0, 0.0, 5e-324, -5e-324, inf)] == [-inf, inf, inf, -inf, inf]
    assert [lgamma(x) for x in (-inf, -3.0, 0.0, inf)] == [inf, inf, inf, inf]
    assert all(math.isnan(function(math.nan)) for function in VALUES)
    assert tgamma(-184.5) == 0 and math.copysign(1, tgamma(-184.5)) == -1
