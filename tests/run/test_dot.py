"""`tl.dot`: types of operands, accumulators, shapes from 16 on, transposed operands, errors by the largest element."""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.dtypes import FLOATS
from tests.float_codes import values

pytestmark = pytest.mark.each_gpu

# Products of fp16 and bf16 are exact in fp32, and so are the sums but for the accumulator's rounding.
TOLERANCE = {"float16": 1e-5, "bfloat16": 1e-5, "float32": 1e-5}


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, out_ptr, ADD: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    a = tl.load(a_ptr + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])
    c_offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    out = tl.dot(a, b, tl.load(c_ptr + c_offsets)) if ADD else tl.dot(a, b)
    tl.store(out_ptr + c_offsets, out)


@pytest.mark.share(3)
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("sizes", [(16, 16, 16), (32, 64, 16), (16, 32, 128), (128, 16, 32)])
def test_floats(draw, poisoned, check_norm, sizes, dtype, add):
    m, n, k = sizes
    a, b, c = draw(dtype, (m, k)), draw(dtype, (k, n)), draw("float32", (m, n))
    out = poisoned("float32", (m, n))
    dot_kernel[(1,)](a, b, c, out, ADD=add, M=m, N=n, K=k)
    expected = a.astype(np.float64) @ b.astype(np.float64) + (c if add else 0)
    check_norm(out, expected, TOLERANCE[dtype], dtype == "float32")


@triton.jit
def scores_and_sums_kernel(a_ptr, b_ptr, out_ptr, num_steps, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m, n, d = tl.arange(0, M)[:, None], tl.arange(0, N)[:, None], tl.arange(0, D)[None, :]
    a, total = tl.load(a_ptr + m * D + d), tl.zeros((M, D), tl.float32)
    for step in range(num_steps):
        b = tl.load(b_ptr + step * N * D + n * D + d)
        scores = tl.dot(a, tl.trans(b))
        total += tl.dot(scores.to(b.dtype), b)
    tl.store(out_ptr + m * D + d, total)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("sizes", [(16, 16, 16), (32, 16, 32)])
def test_a_product_of_each_step_beside_one_that_steps_add_to(draw, poisoned, dtype, sizes):
    """The second one may be computed of several steps at a time, the first one may not. All numbers are exact."""
    m, n, d = sizes
    num_steps = 7
    a, b = (draw("int8", shape, -2, 2).astype(draw(dtype, 1).dtype) for shape in ((m, d), (num_steps * n, d)))
    out = poisoned("float32", (m, d))
    scores_and_sums_kernel[(1,)](a, b, out, num_steps, M=m, N=n, D=d)
    wide, rows = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(out, wide @ rows.T @ rows)


@pytest.mark.parametrize("add", [False, True])
def test_bytes_accumulate_in_int32(draw, poisoned, check, add):
    m, n, k = 16, 32, 64
    a, b, c = draw("int8", (m, k)), draw("int8", (k, n)), draw("int32", (m, n), -1000, 1000)
    out = poisoned("int32", (m, n))
    dot_kernel[(1,)](a, b, c, out, ADD=add, M=m, N=n, K=k)
    check(out, a.astype(np.int32) @ b.astype(np.int32) + (c if add else 0))


@triton.jit
def gram_kernel(x_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr):
    rows, ks = tl.arange(0, M), tl.arange(0, K)
    acc = tl.zeros([M, M], tl.float32)
    for start in range(0, n, K):
        x = tl.load(x_ptr + rows[:, None] * n + start + ks[None, :], mask=start + ks[None, :] < n, other=0.0)
        acc = tl.dot(x, tl.trans(x), acc)
    acc = tl.where(rows[:, None] == rows[None, :], 0.0, acc)
    tl.store(out_ptr + rows[:, None] * M + rows[None, :], acc)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_loop_with_a_transposed_operand(draw, poisoned, check_norm, dtype):
    x, out = draw(dtype, (32, 75)), poisoned("float32", (32, 32))
    gram_kernel[(1,)](x, out, 75, M=32, K=16)
    expected = x.astype(np.float64) @ x.astype(np.float64).T
    np.fill_diagonal(expected, 0)
    check_norm(out, expected, TOLERANCE[dtype], dtype == "float32")


@triton.jit
def chain_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + offsets), tl.load(b_ptr + offsets)
    p = tl.dot(a, b)
    p = p - tl.max(p, 1)[:, None]
    tl.store(out_ptr + offsets, tl.dot(p.to(a.dtype), b) * 0.5)


def test_dot_of_a_dot(draw, poisoned, check_norm):
    a, b, out = draw("float32", (32, 32)), draw("float32", (32, 32)), poisoned("float32", (32, 32))
    chain_kernel[(1,)](a, b, out, N=32)
    p = a.astype(np.float64) @ b
    check_norm(out, (p - p.max(axis=1, keepdims=True)) @ b * 0.5, 1e-5, tf32=True)


@triton.jit
def ranked_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANS: tl.constexpr):
    a = tl.load(a_ptr + tl.arange(0, 4 * M * K)).reshape(2, 1, 2, M, K)
    b = tl.load(b_ptr + tl.arange(0, 4 * N * K)).reshape([2, 1, 2, N, K] if TRANS else [2, 1, 2, K, N])
    product = tl.dot(a, b, trans_b=TRANS, input_precision="ieee")
    tl.store(out_ptr + tl.arange(0, 4 * M * N), product.reshape(4 * M * N))


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize(
    ("dtype", "sizes"), [("float16", (16, 32, 16)), ("float32", (4, 8, 2)), ("float64", (1, 4, 1))]
)
def test_batches_of_any_rank(draw, poisoned, check_norm, dtype, sizes, trans):
    m, n, k = sizes
    a, b = draw(dtype, (2, 1, 2, m, k)), draw(dtype, (2, 1, 2, n, k) if trans else (2, 1, 2, k, n))
    out = poisoned("float64" if dtype == "float64" else "float32", (2, 1, 2, m, n))
    ranked_kernel[(1,)](a, b, out, M=m, N=n, K=k, TRANS=trans)
    right = np.swapaxes(b, -1, -2) if trans else b
    check_norm(out, a.astype(np.float64) @ right.astype(np.float64), 1e-5)


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 16, 4), (16, 1, 32)])
def test_small_sizes(draw, poisoned, check_norm, dtype, sizes):
    m, n, k = sizes
    a, b = draw(dtype, (m, k)), draw(dtype, (k, n))
    result = {"int8": "int32", "float64": "float64"}.get(dtype, "float32")
    c, out = draw(result, (m, n), -100, 100), poisoned(result, (m, n))
    dot_kernel[(1,)](a, b, c, out, ADD=True, M=m, N=n, K=k)
    check_norm(out, a.astype(np.float64) @ b.astype(np.float64) + c, 1e-5, tf32=dtype == "float32")


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    ("dtype", "m", "num_warps"), [("float16", 8, 1), ("int8", 8, 1), ("float32", 8, 1), ("float16", 4, 1)]
)
def test_eight_columns_by_threads(draw, poisoned, check, dtype, m, num_warps, add):
    """Lanes have the sums that they have of mma.sync, which multiplies 16 rows."""
    a, b = (draw("int8", shape, -9, 9).astype(dtype) for shape in ((m, 32), (32, 8)))
    total = "int32" if dtype == "int8" else "float32"
    c, out = draw("int8", (m, 8)).astype(total), poisoned(total, (m, 8))
    dot_kernel[(1,)](a, b, c, out, ADD=add, M=m, N=8, K=32, num_warps=num_warps)
    check(out, a.astype(np.int32) @ b.astype(np.int32) + (c if add else 0))


@triton.jit
def two_sums_kernel(x_ptr, q_ptr, w_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr, TWICE: tl.constexpr):
    m, k = tl.arange(0, M)[:, None], tl.arange(0, K)[None, :]
    w, q = tl.load(w_ptr + tl.arange(0, K)[:, None] * K + k), tl.load(q_ptr + m * K + k)
    acc = tl.zeros((M, K), tl.float32)
    for step in tl.range(0, n, warp_specialize=True):
        x = tl.load(x_ptr + step * M * K + m * K + k)
        acc = tl.dot(x, w, acc)
        acc = tl.dot(q, w, acc)
        if TWICE:
            acc = acc + acc
    tl.store(out_ptr + m * K + k, acc)


@pytest.mark.share(2)
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("n", [0, 1, 4])
def test_a_loaded_operand_is_read_before_the_last_product_of_an_iteration(draw, poisoned, n, twice):
    x, q, w = (draw("int8", shape, -2, 2).astype(np.float16) for shape in ((4, 64, 32), (64, 32), (32, 32)))
    out, expected = poisoned("float32", (64, 32)), np.zeros((64, 32))
    two_sums_kernel[(1,)](x, q, w, out, n, M=64, K=32, TWICE=twice, num_warps=4)
    for step in range(n):
        expected = (expected + (x[step].astype(np.float64) + q) @ w) * (2 if twice else 1)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def fp8_rows_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    a, b = tl.load(a_ptr + m * K + k[None, :]), tl.load(b_ptr + n * K + k[:, None])
    tl.store(out_ptr + m * N + n, tl.dot(a, b))


def _check_fp8_rows(poisoned, draw, dtype):
    a, b = (draw("float32", shape, -3, 3).round().astype(dtype) for shape in ((64, 32), (16, 32)))
    out = poisoned("float32", (64, 16))
    fp8_rows_kernel[(1,)](a, b, out, M=64, N=16, K=32, num_warps=4)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_fp8_without_room_in_shared_memory(draw, poisoned, monkeypatch, dtype):
    """As of 256x256 with K = 256, whose operands no instruction takes from there."""
    monkeypatch.setattr("deuteron.passes.gpu.dot_instructions.MAX_SHARE", 0)
    _check_fp8_rows(poisoned, draw, dtype)


def test_fp8_where_operands_are_not_placed(draw, poisoned, monkeypatch):
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "place-dot-operands")
    _check_fp8_rows(poisoned, draw, ml_dtypes.float8_e5m2)


@triton.jit
def fp8_kernel(a_ptr, b_ptr, wide_ptr, half_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    tl.store(wide_ptr + at, tl.dot(a, b, max_num_imprecise_acc=16))
    tl.store(half_ptr + at, tl.dot(a, b.T, out_dtype=tl.float16))


FP8_PAIRS = [("fp8e4nv", "fp8e5"), ("fp8e5", "fp8e4b8"), ("fp8e4b15", "fp8e4nv"), ("fp8e5b16", "fp8e5b16")]


@pytest.mark.parametrize("types", FP8_PAIRS, ids="-".join)
def test_fp8_types_may_differ(rng, poisoned, types):
    """Numbers of few bits, so that all sums are exact."""
    declared = [next(type for type in FLOATS if type.signature == name) for name in types]
    tables = [values(type) for type in declared]
    codes = [rng.choice(np.flatnonzero(np.isin(np.abs(table), [0.25, 0.5, 1.0])), (32, 32)) for table in tables]
    wide, half = poisoned("float32", (32, 32)), poisoned("float16", (32, 32))
    arrays = [
        triton.reinterpret(code.astype(np.uint8), tl.dtype(name)) for code, name in zip(codes, types, strict=True)
    ]
    fp8_kernel[(1,)](*arrays, wide, half, N=32)
    a, b = (table[code].astype(np.float64) for table, code in zip(tables, codes, strict=True))
    np.testing.assert_array_equal(wide, a @ b)
    np.testing.assert_array_equal(half, a @ b.T)
