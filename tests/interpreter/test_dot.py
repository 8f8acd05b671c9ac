"""Matrix products against float64 and Python integers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

DOT = '"tt.dot"(%x0, %x1, %x2) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}>'


@pytest.mark.parametrize(
    ("element", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32), ("f64", np.float64)]
)
@pytest.mark.parametrize("batch", [(), (2,)])
def test_floats(evaluate, rng, element, dtype, batch):
    a, b = rng.standard_normal((*batch, 16, 32)).astype(dtype), rng.standard_normal((*batch, 32, 8)).astype(dtype)
    acc = "f64" if element == "f64" else "f32"
    c = rng.standard_normal((*batch, 16, 8)).astype(np.float64 if acc == "f64" else np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    result = evaluate(DOT, [(element, a), (element, b), (acc, c)], acc, c.shape)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


def test_an_f16_accumulator_rounds_once(evaluate):
    a, b = np.full((16, 16), 1, np.float16), np.full((16, 16), 1, np.float16)
    result = evaluate(DOT, [("f16", a), ("f16", b), ("f16", np.full((16, 16), 2048))], "f16")
    assert (result == 2064).all()


def test_integers(evaluate, rng):
    a, b = rng.integers(-128, 128, (2, 16, 16), np.int8)
    c = np.full((16, 16), 2**31 - 1, np.int32)
    expected = (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32)
    np.testing.assert_array_equal(evaluate(DOT, [("i8", a), ("i8", b), ("i32", c)], "i32"), expected)
