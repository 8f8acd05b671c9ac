"""Integer and float arithmetic, comparisons and selects, at the edges of their types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS

INT_MIN, INT_MAX = -(2**31), 2**31 - 1


@pytest.mark.parametrize(
    ("op", "lhs", "rhs", "expected"),
    [
        ("addi", [INT_MAX, INT_MIN, 5, -1], [1, -1, 7, 1], [INT_MIN, INT_MAX, 12, 0]),
        ("subi", [INT_MIN, 0, 3, 4], [1, INT_MIN, 5, 4], [INT_MAX, INT_MIN, -2, 0]),
        ("muli", [65536, INT_MAX, -3, 0], [65536, 2, 7, 9], [0, -2, -21, 0]),
        ("divsi", [7, -7, 7, -7], [2, 2, -2, -2], [3, -3, -3, 3]),
        ("remsi", [7, -7, 7, -7], [2, 2, -2, -2], [1, -1, 1, -1]),
        ("divsi", [INT_MIN, 5, INT_MIN, 0], [-1, 0, 1, 5], [INT_MIN, 0, INT_MIN, 0]),
        ("remsi", [INT_MIN, 5, INT_MIN, 0], [-1, 0, 3, 5], [0, 5, -2, 0]),
        ("divui", [-1, -1, 8, 3], [2, 0, -1, 2], [INT_MAX, 0, 0, 1]),
        ("remui", [-1, 9, 8, 3], [10, 0, -1, 2], [5, 9, 8, 1]),
        ("floordivsi", [7, -7, 7, -7], [2, 2, -2, -2], [3, -4, -4, 3]),
        ("floordivsi", [INT_MIN, -7, 7, 0], [-1, 0, 0, 0], [INT_MIN, -1, 0, 0]),
        ("ceildivsi", [7, -7, 7, -7], [2, 2, -2, -2], [4, -3, -3, 4]),
        ("ceildivsi", [INT_MIN, -7, 7, 0], [-1, 0, 0, 0], [INT_MIN, 0, 1, 0]),
        ("ceildivui", [-1, 7, 8, 0], [2, 2, 2, 0], [INT_MIN, 4, 4, 0]),
        ("minsi", [-1, 3, INT_MIN, 2], [1, 2, 0, 2], [-1, 2, INT_MIN, 2]),
        ("minui", [-1, 3, INT_MIN, 2], [1, 2, 0, 2], [1, 2, 0, 2]),
        ("maxui", [-1, 3, INT_MIN, 2], [1, 2, 0, 2], [-1, 3, INT_MIN, 2]),
        ("shli", [1, 1, 1, -1], [31, 32, 0, 4], [INT_MIN, 0, 1, -16]),
        ("shrsi", [-16, -1, INT_MIN, 5], [2, 40, 31, 32], [-4, -1, -1, 0]),
        ("shrui", [-16, -1, INT_MIN, 5], [28, 40, 31, 32], [15, 0, 1, 0]),
        ("xori", [6, -1, 0, 1], [3, -1, 5, 1], [5, 0, 5, 0]),
    ],
)
def test_i32(evaluate, op, lhs, rhs, expected):
    assert evaluate(f'"arith.{op}"(%x0, %x1)', [("i32", lhs), ("i32", rhs)], "i32").tolist() == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("addi", [0, 1, 1, 0]),
        ("muli", [0, 0, 0, 1]),
        ("subi", [0, 1, 1, 0]),
        ("andi", [0, 0, 0, 1]),
        ("ori", [0, 1, 1, 1]),
        ("xori", [0, 1, 1, 0]),
        ("maxsi", [0, 0, 0, 1]),
        ("maxui", [0, 1, 1, 1]),
    ],
)
def test_i1_is_minus_one_where_it_is_signed(evaluate, op, expected):
    bits = [("i1", [0, 0, 1, 1]), ("i1", [0, 1, 0, 1])]
    assert evaluate(f'"arith.{op}"(%x0, %x1)', bits, "i1").tolist() == [bool(bit) for bit in expected]


def test_int8_and_int64_wrap(evaluate):
    assert evaluate('"arith.addi"(%x0, %x1)', [("i8", [127, -128]), ("i8", [1, -1])], "i8").tolist() == [-128, 127]
    big = [("i64", [2**63 - 1, -(2**63)]), ("i64", [2, 3])]
    assert evaluate('"arith.muli"(%x0, %x1)', big, "i64").tolist() == [-2, -(2**63)]


def test_scalars_wrap_silently(evaluate, recwarn):
    assert evaluate('"arith.addi"(%x0, %x1)', [("i32", INT_MAX), ("i32", 1)], "i32") == INT_MIN
    assert not recwarn.list


@pytest.mark.parametrize("bits", [8, 32, 64])
def test_mulhiui_against_python_integers(evaluate, bits):
    rng = np.random.default_rng(bits)
    lhs, rhs = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), (2, 64))
    lhs[:2], rhs[:2] = -1, [-1, 1]
    mask = (1 << bits) - 1
    expected = [((int(a) & mask) * (int(b) & mask) >> bits) & mask for a, b in zip(lhs, rhs, strict=True)]
    operands = [(f"i{bits}", lhs), (f"i{bits}", rhs)]
    assert [int(v) & mask for v in evaluate('"tt.mulhiui"(%x0, %x1)', operands, f"i{bits}")] == expected


def test_f16_overflows_to_infinity_and_keeps_subnormals(evaluate):
    lhs, rhs = [65504, 6e-8, 65504, 2049], [65504, 6e-8, 15, 1]
    result = evaluate('"arith.addf"(%x0, %x1)', [("f16", lhs), ("f16", rhs)], "f16")
    assert result.tolist() == [np.inf, 2 * np.float16(6e-8), 65504, 2048]


def test_bf16_rounds_once_to_nearest_even(evaluate):
    rng = np.random.default_rng(3)
    lhs, rhs = (rng.standard_normal((2, 256)) * 100).astype(ml_dtypes.bfloat16)
    for op, function in [("addf", np.add), ("mulf", np.multiply), ("divf", np.divide)]:
        expected = function(lhs.astype(np.float64), rhs.astype(np.float64)).astype(ml_dtypes.bfloat16)
        result = evaluate(f'"arith.{op}"(%x0, %x1)', [("bf16", lhs), ("bf16", rhs)], "bf16")
        np.testing.assert_array_equal(result.view(np.uint16), expected.view(np.uint16))


def test_float_division_by_zero_and_nan(evaluate):
    result = evaluate('"arith.divf"(%x0, %x1)', [("f32", [1, -1, 0, np.nan]), ("f32", [0, 0, 0, 1])], "f32")
    np.testing.assert_array_equal(result, np.float32([np.inf, -np.inf, np.nan, np.nan]))


def test_remf_has_the_sign_of_the_dividend(evaluate):
    result = evaluate('"arith.remf"(%x0, %x1)', [("f32", [5.5, -5.5, 1e30, 1]), ("f32", [2, 2, 3, np.inf])], "f32")
    np.testing.assert_array_equal(result, np.fmod(np.float32([5.5, -5.5, 1e30, 1]), np.float32([2, 2, 3, np.inf])))


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("maximumf", [np.nan, np.nan, 2, np.nan]),
        ("maxnumf", [1, 1, 2, np.nan]),
        ("minimumf", [np.nan, np.nan, 1, np.nan]),
        ("minnumf", [1, 1, 1, np.nan]),
    ],
)
def test_max_and_min_of_nan(evaluate, op, expected):
    operands = [("f32", [np.nan, 1, 1, np.nan]), ("f32", [1, np.nan, 2, np.nan])]
    np.testing.assert_array_equal(evaluate(f'"arith.{op}"(%x0, %x1)', operands, "f32"), np.float32(expected))


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("false", [0, 0, 0, 0]),
        ("oeq", [0, 1, 0, 0]),
        ("ogt", [0, 0, 0, 1]),
        ("oge", [0, 1, 0, 1]),
        ("olt", [1, 0, 0, 0]),
        ("ole", [1, 1, 0, 0]),
        ("one", [1, 0, 0, 1]),
        ("ord", [1, 1, 0, 1]),
        ("ueq", [0, 1, 1, 0]),
        ("ugt", [0, 0, 1, 1]),
        ("uge", [0, 1, 1, 1]),
        ("ult", [1, 0, 1, 0]),
        ("ule", [1, 1, 1, 0]),
        ("une", [1, 0, 1, 1]),
        ("uno", [0, 0, 1, 0]),
        ("true", [1, 1, 1, 1]),
    ],
)
def test_cmpf(evaluate, predicate, expected):
    index = CMPF_COMPARISON_OPERATIONS.index(predicate)
    op = f'"arith.cmpf"(%x0, %x1) <{{predicate = {index} : i64, fastmath = #arith.fastmath<none>}}>'
    result = evaluate(op, [("f32", [1, 0.0, np.nan, 3]), ("f32", [2, -0.0, 1, 2])], "i1")
    assert result.tolist() == [bool(bit) for bit in expected]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [("eq", [0, 1]), ("ne", [1, 0]), ("slt", [1, 0]), ("sle", [1, 1]), ("sgt", [0, 0]), ("sge", [0, 1])]
    + [("ult", [0, 0]), ("ule", [0, 1]), ("ugt", [1, 0]), ("uge", [1, 1])],
)
def test_cmpi(evaluate, predicate, expected):
    index = CMPI_COMPARISON_OPERATIONS.index(predicate)
    op = f'"arith.cmpi"(%x0, %x1) <{{predicate = {index} : i64}}>'
    assert evaluate(op, [("i32", [-1, 4]), ("i32", [1, 4])], "i1").tolist() == [bool(bit) for bit in expected]


def test_select_by_a_tile_and_by_one_condition(evaluate):
    tiles = [("f32", [1.0, 2.0]), ("f32", [3.0, 4.0])]
    op = '"arith.select"(%x0, %x1, %x2)'
    assert evaluate(op, [("i1", [1, 0]), *tiles], "f32", (2,)).tolist() == [1.0, 4.0]
    assert evaluate(op, [("i1", False), *tiles], "f32", (2,)).tolist() == [3.0, 4.0]


def test_dense_constants(run_kernel):
    out = np.full(4, 77, np.int32)
    body = """
    %v = "arith.constant"() <{value = dense<[1, -2, 3, 2147483647]> : tensor<4xi32>}> : () -> tensor<4xi32>
    %i = "tt.make_range"() <{start = 0 : i32, end = 4 : i32}> : () -> tensor<4xi32>
    %b = "tt.splat"(%out) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
    %p = "tt.addptr"(%b, %i) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
    "tt.store"(%p, %v) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}>
      : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> ()"""
    run_kernel("%out: !tt.ptr<i32>", body, [out])
    assert out.tolist() == [1, -2, 3, 2147483647]
