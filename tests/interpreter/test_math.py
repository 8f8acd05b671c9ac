"""`math` against float64, rounded once; bit counts against Python integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

REFERENCE = {
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "floor": math.floor,
    "ceil": math.ceil,
    "absf": abs,
}


@pytest.mark.parametrize("op", REFERENCE)
@pytest.mark.parametrize(("type", "dtype", "ulp"), [("f32", np.float32, 2.0**-24), ("f64", np.float64, 2.0**-51)])
def test_functions(evaluate, rng, op, type, dtype, ulp):
    values = rng.uniform(0.01, 20, 64).astype(dtype)
    expected = np.array([REFERENCE[op](float(value)) for value in values])
    result = evaluate(f'"math.{op}"(%x0)', [(type, values)], type)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=1.01 * ulp)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("log", [-np.inf, np.nan, np.inf, np.nan]),
        ("rsqrt", [np.inf, np.nan, 0, np.nan]),
        ("exp", [1, 1 / np.e, np.inf, np.nan]),
    ],
)
def test_functions_at_the_edges(evaluate, op, expected):
    values = [("f32", [0.0, -1.0, np.inf, np.nan])]
    np.testing.assert_array_equal(evaluate(f'"math.{op}"(%x0)', values, "f32"), np.float32(expected))


def test_f16_overflows_and_underflows(evaluate):
    assert evaluate('"math.exp"(%x0)', [("f16", [12.0, -30.0])], "f16").tolist() == [np.inf, 0.0]


def test_rounding(evaluate):
    values = [0.5, 1.5, -0.5, -2.5, 0.49999997, 2.0**23 + 1, np.inf, -0.2]
    assert evaluate('"math.roundeven"(%x0)', [("f32", values)], "f32").tolist() == [
        0, 2, 0, -2, 0, 2.0**23 + 1, np.inf, 0
    ]  # fmt: skip
    assert evaluate('"math.round"(%x0)', [("f32", values)], "f32").tolist() == [
        1, 2, -1, -3, 0, 2.0**23 + 1, np.inf, 0
    ]  # fmt: skip


def test_fma_rounds_once(evaluate):
    a = np.float32([1 + 2.0**-12, 3.0, 1e30, 1 + 2.0**-23])
    b = np.float32([1 + 2.0**-12, 5.0, 1e30, 1 + 2.0**-23])
    c = np.float32([-(1 + 2.0**-11), 2.0, -np.inf, 2.0**-60])
    result = evaluate('"math.fma"(%x0, %x1, %x2)', [("f32", a), ("f32", b), ("f32", c)], "f32")
    assert result.tolist() == [2.0**-24, 17.0, -np.inf, 1 + 2.0**-22]


def test_fma_in_f64_keeps_the_low_half_of_the_product(evaluate):
    a, c = np.float64([1 + 2.0**-30, 1e200]), np.float64([-(1 + 2.0**-29), 1.0])
    result = evaluate('"math.fma"(%x0, %x1, %x2)', [("f64", a), ("f64", a), ("f64", c)], "f64")
    assert result.tolist() == [2.0**-60, np.inf]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bit_counts(evaluate, rng, bits):
    values = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), 32, f"int{bits}")
    values[:4] = [0, -1, 1, -(2 ** (bits - 1))]
    patterns = [int(v) & ((1 << bits) - 1) for v in values]
    leading = [bits - p.bit_length() for p in patterns]
    trailing = [(p & -p).bit_length() - 1 if p else bits for p in patterns]
    operand = [(f"i{bits}", values)]
    assert evaluate('"math.ctlz"(%x0)', operand, f"i{bits}").tolist() == leading
    assert evaluate('"math.cttz"(%x0)', operand, f"i{bits}").tolist() == trailing
    assert evaluate('"math.ctpop"(%x0)', operand, f"i{bits}").tolist() == [p.bit_count() for p in patterns]


def test_absi_of_the_smallest(evaluate):
    assert evaluate('"math.absi"(%x0)', [("i32", [-(2**31), -5])], "i32").tolist() == [-(2**31), 5]


@pytest.mark.parametrize(("propagate", "expected"), [(0, [1.0, 3.0, -1.0, -1.0]), (65535, [1.0, 3.0, -1.0, np.nan])])
def test_clampf(evaluate, propagate, expected):
    operands = [("f32", [1.0, 9.0, -9.0, np.nan]), ("f32", [-1.0] * 4), ("f32", [3.0] * 4)]
    op = f'"tt.clampf"(%x0, %x1, %x2) <{{propagateNan = {propagate} : i32}}>'
    np.testing.assert_array_equal(evaluate(op, operands, "f32"), np.float32(expected))


def test_precise_ops_are_correctly_rounded(evaluate, rng):
    x, y = rng.uniform(0.1, 9, (2, 64)).astype(np.float32)
    np.testing.assert_array_equal(evaluate('"tt.precise_divf"(%x0, %x1)', [("f32", x), ("f32", y)], "f32"), x / y)
    np.testing.assert_array_equal(evaluate('"tt.precise_sqrt"(%x0)', [("f32", x)], "f32"), np.sqrt(x))
