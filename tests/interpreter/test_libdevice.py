"""The interpreter's functions of libdevice: of scalars what they are of tiles, and values that are known."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from libdevice_kernels import by_types, draw, dtype_name

from deuteron.interpreter.libdevice import compute
from deuteron.interpreter.numerics import norms
from deuteron.language.extra.libdevice import SYMBOLS


@pytest.mark.parametrize("types", by_types(), ids="-".join)
def test_scalars(rng, types):
    tiles = [draw(rng, dtype, 3) for dtype in types]
    if types[0] == "int32" and len(types) == 2 and types[1] != "int32":
        tiles[0] %= 50
    tiles = [x.view(x.dtype.name.replace("uint", "int")) for x in tiles]
    for _, overload in by_types()[types]:
        with np.errstate(all="ignore"):
            expected = compute(overload.symbol, *tiles)
            got = [compute(overload.symbol, *(x[i] for x in tiles)) for i in range(3)]
        assert [np.shape(y) for y in got] == [()] * 3
        np.testing.assert_array_equal(np.array(got), expected, overload.symbol)


@pytest.mark.parametrize(
    ("name", "operands", "expected"),
    [
        ("j0", (2.404825557695773,), -6.108765e-17),
        ("j1", (1.0,), 0.44005058574493355),
        ("yn", (2, 1.5), -0.9321937597629739),
        ("cyl_bessel_i1", (2.0,), 1.590636854637329),
        ("erfinv", (0.5,), 0.4769362762044699),
        ("erfcinv", (1e-100,), 15.065574702592647),
        ("normcdfinv", (0.975,), 1.959963984540054),
        ("erfcx", (10.0,), 0.05614099274382259),
        ("lgamma", (-0.5,), math.log(2 * math.sqrt(math.pi))),
        ("lgamma", (2 - 2.0**-49,), -7.510158452434482e-16),
        ("fma_rd", (1.0 + 2.0**-52, 1.0 + 2.0**-52, 0.0), 1.0 + 2.0**-51),
        ("add_ru", (1.0, 2.0**-80), 1.0 + 2.0**-52),
        ("double2int_rn", (math.nan,), -(2**31)),
        ("remainder", (5.0, 3.0), -1.0),
    ],
)
def test_values(name, operands, expected):
    overload = next(o for n, o in SYMBOLS.values() if n == name and dtype_name(o.parameters[-1]) == "float64")
    typed = [np.array(x, dtype_name(type)) for x, type in zip(operands, overload.parameters, strict=True)]
    np.testing.assert_allclose(compute(overload.symbol, *typed), expected, rtol=1e-6 if name == "j0" else 4e-16)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_norms_are_rounded_once(rng, count):
    """Numbers of one size, and of very different ones."""
    sizes = 10.0 ** (rng.uniform(-1, 1, (count, 300)) * rng.choice([0.1, 3, 30, 140], 300))
    numbers = rng.standard_normal((count, 300)) * sizes
    with localcontext(prec=60):
        exact = [sum(Decimal(x) ** 2 for x in column).sqrt() for column in numbers.T]
        for got, power in ((norms.norm(*numbers), 1), (norms.rnorm(*numbers), -1)):
            expected = [x**power for x in exact]
            units = [abs(Decimal(y) - x) / Decimal(math.ulp(x)) for y, x in zip(got, expected, strict=True)]
            assert max(units) < 0.501


@pytest.mark.parametrize(("name", "power"), [("cbrt", 3), ("rcbrt", -3)])
def test_roots_are_rounded_once(rng, name, power):
    """The cube of what is a hundredth of an ulp beyond half of one lies on the other side."""
    x = draw(rng, "float64", 2000)
    x = x[np.isfinite(x) & (x != 0)]
    (overload,) = (o for n, o in SYMBOLS.values() if n == name and dtype_name(o.parameters[0]) == "float64")
    for number, root in zip(x, compute(overload.symbol, x), strict=True):
        half = Fraction(51, 100) * Fraction(np.spacing(abs(root)))
        ends = sorted((Fraction(root) + side) ** power for side in (-half, half))
        assert ends[0] < Fraction(number) < ends[1], (number, root)
