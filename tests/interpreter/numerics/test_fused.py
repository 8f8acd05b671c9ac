"""a * b + c with one rounding, over the whole range, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from deuteron.interpreter.numerics.fused import fused_multiply_add
from deuteron.interpreter.numerics.rounding import round_exactly

# Near both ends the halves of an operand, or parts of the product, leave the range.
CASES = {
    "an operand whose halves overflow": ("0x1.e77bc9a61485p+1020", "0x1.ec4f7bf565cd8p-3", "0x1.19cd73c8f644ep+1000"),
    "a product that overflows, of which little is left": ("0x1p+1023", "0x1.8p+0", "-0x1.7ffffffffffffp+1023"),
    "a subnormal sum": ("-0x1.e9537fe1c781ap-513", "-0x1.e9640a2a5b7a3p-513", "-0x0.e373bbd4bc51ap-1022"),
    "one operand large, one small": ("0x1.462d540752ba1p+1010", "0x1.3d831b8f2d04bp-1010", "0x1.204577ef411afp-60"),
    "what is below the range": ("-0x1p-600", "0x1p-600", "0x0p+0"),
    "what is above the range": ("-0x1p+600", "0x1p+600", "0x1p+1000"),
    "a product that cancels": ("0x1.8p+0", "0x1p-1", "-0x1.8p-1"),
}


def exactly(a: float, b: float, c: float, dtype: np.dtype) -> float:
    value = Fraction(a) * Fraction(b) + Fraction(c)
    return round_exactly(value, dtype, "rn") if value else 0.0


@pytest.mark.parametrize("name", CASES)
def test_the_ends_of_the_range(name):
    a, b, c = (np.array([float.fromhex(text)]) for text in CASES[name])
    result, expected = fused_multiply_add(a, b, c), exactly(a[0], b[0], c[0], a.dtype)
    assert result.tolist() == [expected]
    assert np.signbit(result[0]) == np.signbit(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_all_sizes(rng, dtype):
    """The third is random, or near the product of the others."""
    most = np.finfo(dtype).maxexp - 2
    a, b, c = (np.exp2(rng.uniform(-most, most, 300)) * rng.choice([-1, 1], 300) for _ in range(3))
    b[:200] = np.exp2(rng.uniform(-8, 8, 200))
    c[:100] = a[:100] * -b[:100] * (1 + rng.integers(-3, 4, 100) * np.finfo(dtype).eps)
    with np.errstate(over="ignore"):
        a, b, c = (x.astype(dtype) for x in (a, b, c))
    keep = np.isfinite(c)
    expected = [exactly(*map(float, row), np.dtype(dtype)) for row in zip(a[keep], b[keep], c[keep], strict=True)]
    assert fused_multiply_add(a, b, c)[keep].tolist() == expected


def test_infinities_and_zeros():
    inf, nan = np.inf, np.nan
    a = np.array([1e300, inf, 1.0, nan, -0.0, 0.0])
    b = np.array([1e300, 0.0, -inf, 1.0, 1e300, 1.0])
    c = np.array([-inf, 1.0, inf, 1.0, -0.0, -0.0])
    expected = np.array([-inf, nan, nan, nan, -0.0, 0.0])
    result = fused_multiply_add(a, b, c)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result[4:]), np.signbit(expected[4:]))
