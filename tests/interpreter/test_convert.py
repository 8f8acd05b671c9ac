"""Conversions, against ml_dtypes where it has the format, and at the edges where C leaves them undefined."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
EDGES = np.float32([0.0, -0.0, 1e-45, -1e-40, 3.4e38, np.inf, -np.inf, np.nan, 65519.9, 65520.0, 448.1, 464.0, 57345.0])


def random_floats(rng: np.random.Generator, count: int = 499) -> np.ndarray:
    values = (rng.standard_normal(count) * 10.0 ** rng.integers(-40, 39, count)).astype(np.float32)
    return np.concatenate([values, EDGES])


@pytest.mark.parametrize(
    ("op", "source", "values", "result", "expected"),
    [
        ("extsi", "i8", [-1, 127], "i32", [-1, 127]),
        ("extui", "i8", [-1, 127], "i32", [255, 127]),
        ("extsi", "i1", [1, 0], "i32", [-1, 0]),
        ("extui", "i1", [1, 0], "i32", [1, 0]),
        ("trunci", "i32", [256 + 5, -1], "i8", [5, -1]),
        ("trunci", "i32", [3, 2], "i1", [True, False]),
        ("sitofp", "i1", [1, 0], "f32", [-1.0, 0.0]),
        ("uitofp", "i1", [1, 0], "f32", [1.0, 0.0]),
        ("uitofp", "i32", [-1, 1], "f64", [2.0**32 - 1, 1.0]),
        ("sitofp", "i32", [16777217, -16777219], "f32", [16777216.0, -16777220.0]),
        ("sitofp", "i64", [65520, 65519], "f16", [np.inf, 65504.0]),
        ("fptosi", "f32", [-1.9, 1.9], "i32", [-1, 1]),
        ("fptosi", "f32", [3e9, -3e9], "i32", [INT_MAX, INT_MIN]),
        ("fptosi", "f32", [np.nan, np.inf], "i32", [0, INT_MAX]),
        ("fptosi", "f64", [1e300, -np.inf], "i64", [2**63 - 1, -(2**63)]),
        ("fptoui", "f32", [-5.0, 3e9], "i32", [0, 3000000000 - 2**32]),
        ("fptoui", "f32", [np.inf, 255.5], "i8", [-1, -1]),
        ("fptoui", "f64", [2.0**63, 1e30], "i64", [-(2**63), -1]),
        ("extf", "f16", [6e-8, np.inf], "f32", [np.float32(np.float16(6e-8)), np.inf]),
        ("truncf", "f64", [1 + 2.0**-24 + 2.0**-50, 1e300], "f32", [1 + 2.0**-23, np.inf]),
    ],
)
def test_arith_casts(evaluate, op, source, values, result, expected):
    assert evaluate(f'"arith.{op}"(%x0)', [(source, values)], result).tolist() == expected


@pytest.mark.parametrize(("type", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
def test_truncf_rounds_to_nearest_even(evaluate, rng, type, dtype):
    values = random_floats(rng)
    with np.errstate(over="ignore"):
        expected = values.astype(dtype)
    result = evaluate('"arith.truncf"(%x0)', [("f32", values)], type)
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))


def test_bf16_from_f64_rounds_once(evaluate):
    """Just above half-way: by way of float32 it would be half-way, and go to even."""
    value = 1 + 2.0**-8 + 2.0**-40
    assert evaluate('"arith.truncf"(%x0)', [("f64", [value, -value])], "bf16").tolist() == [1.0078125, -1.0078125]


@pytest.mark.parametrize(
    ("type", "dtype", "largest"),
    [("f8E4M3FN", ml_dtypes.float8_e4m3fn, 448.0), ("f8E5M2", ml_dtypes.float8_e5m2, 57344.0)],
)
def test_fp8_saturates_and_rounds_to_nearest_even(evaluate, rng, type, dtype, largest):
    values = random_floats(rng)
    expected = np.clip(values, -largest, largest).astype(dtype).astype(np.float32)
    op = '"tt.fp_to_fp"(%x0) <{rounding = 1 : i32}>'
    result = evaluate(op, [("f32", values)], type).astype(np.float32)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result), np.signbit(expected))


@pytest.mark.parametrize("type", ["f8E4M3FN", "f8E5M2"])
def test_every_fp8_pattern_survives_a_round_trip(evaluate, type):
    patterns = np.arange(-128, 128, dtype=np.int8)
    values = evaluate('"tt.bitcast"(%x0)', [("i8", patterns)], type)
    is_nan = np.isnan(values.astype(np.float32))
    back = evaluate('"tt.bitcast"(%x0)', [(type, values)], "i8")
    assert back[~is_nan].tolist() == patterns[~is_nan].tolist()
    assert np.isnan(back.view(values.dtype)[is_nan].astype(np.float32)).all()


@pytest.mark.parametrize(("type", "mantissa_bits"), [("f16", 10), ("bf16", 7)])
def test_rounding_towards_zero(evaluate, rng, type, mantissa_bits):
    values = (rng.standard_normal(512) * 100).astype(np.float32)
    values[:4] = [1e38, -np.inf, 1 + 2.0**-12, -1 - 2.0**-12]
    result = evaluate('"tt.fp_to_fp"(%x0) <{rounding = 0 : i32}>', [("f32", values)], type).astype(np.float64)
    assert (np.abs(result) <= np.abs(values)).all()
    error = np.abs(values[4:] - result[4:])
    assert (error < np.abs(values[4:]) * 2.0**-mantissa_bits).all()
    assert result[1] == -np.inf and result[2] == 1.0 and result[3] == -1.0


def test_bitcasts(evaluate):
    assert evaluate('"tt.bitcast"(%x0)', [("f32", [1.0, -0.0])], "i32").tolist() == [0x3F800000, INT_MIN]
    assert evaluate('"tt.bitcast"(%x0)', [("i16", [0x3F80, 0x4000])], "bf16").tolist() == [1.0, 2.0]
    assert evaluate('"arith.bitcast"(%x0)', [("i64", [0x7FF0000000000000] * 2)], "f64").tolist() == [np.inf] * 2


def test_a_pointer_is_its_address(run_kernel):
    x, out = np.float32([5.0]), np.float32([77.0])
    body = """
    %i = "tt.ptr_to_int"(%x) : (!tt.ptr<f32>) -> i64
    %p = "tt.int_to_ptr"(%i) : (i64) -> !tt.ptr<f32>
    %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>, cache = 1 : i32,
      evict = 1 : i32, isVolatile = false}> : (!tt.ptr<f32>) -> f32
    "tt.store"(%out, %v) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, f32) -> ()"""
    run_kernel("%x: !tt.ptr<f32>, %out: !tt.ptr<f32>", body, [x, out])
    assert out[0] == 5.0
