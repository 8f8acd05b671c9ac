"""Matrix products: types, shapes, transposed operands, accumulators that stay in place."""

import numpy as np
import pytest

import deuteron.language as tl
from deuteron.backend.cpu.lowering import plan_function
from deuteron.backend.cpu.plan.items import Dot, dots_of
from deuteron.backend.cpu.plan.prepare import kernel_of
from deuteron.backend.cpu.plan.products.direct import read_directly
from deuteron.backend.cpu.plan.products.marks import product_of
from deuteron.backend.cpu.plan.tiles.private import nests_of
from deuteron.backend.cpu.target import cpu_target
from deuteron.ir.tt.dot import DotOp


def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANSPOSED: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + i[:, None] * K + k[None, :])
    if TRANSPOSED:
        right = tl.trans(tl.load(b + j[:, None] * K + k[None, :]))
    else:
        right = tl.load(b + k[:, None] * N + j[None, :])
    acc = tl.load(c + i[:, None] * N + j[None, :])
    acc = tl.dot(left, right, acc)
    tl.store(c + i[:, None] * N + j[None, :], acc)


@pytest.mark.share(2)
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (32, 64, 16), (64, 16, 128)])
@pytest.mark.parametrize(
    "types", [("float32", "float32"), ("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32")]
)
def test_product(compare, rng, bfloat16, transposed, m, n, k, types):
    dtype = bfloat16 if types[0] == "bfloat16" else types[0]
    a = (rng.standard_normal((m, k)) * 10).astype(dtype)
    b = (rng.standard_normal((n, k) if transposed else (k, n)) * 10).astype(dtype)
    c = (rng.standard_normal((m, n)) * 10).astype(types[1])
    compare(product, [a, b, c], {"M": m, "N": n, "K": k, "TRANSPOSED": transposed})


def matmul(a, b, c, M, N, K, stride_bk, stride_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    a_ptrs = a + rows[:, None] * K + ks[None, :]
    b_ptrs = b + ks[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.cdiv(K, BK)):
        left = tl.load(a_ptrs, mask=(rows[:, None] < M) & (start * BK + ks[None, :] < K), other=0.0)
        right = tl.load(b_ptrs, mask=start * BK + ks[:, None] < K, other=0.0)
        acc += tl.dot(left, right)
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(c.dtype.element_ty), mask=mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("column_major", [False, True])
def test_matmul_with_edges(compare, rng, dtype, column_major):
    M, N, K = 75, 51, 40
    a, b = rng.standard_normal((M, K)).astype(dtype), rng.standard_normal((K, N)).astype(dtype)
    strides = (1, K) if column_major else (N, 1)
    stored = np.ascontiguousarray(b.T) if column_major else b
    args = [a, stored, np.full((M, N), 9, dtype), M, N, K, *strides]
    compare(matmul, args, {"BM": 32, "BN": 32, "BK": 16}, grid=(3, 2))


def scaled(a, b, c, steps, M: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, K)
    left = tl.load(a + i[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * M + i[None, :])
    acc = tl.zeros((M, M), dtype=tl.float32)
    for _ in range(steps):
        alpha = tl.exp(-i.to(tl.float32) / 16)
        acc = tl.dot(left, right, acc * alpha[:, None])
        left = left * 0.5
    tl.store(c + i[:, None] * M + i[None, :], acc)


@pytest.mark.parametrize("steps", [0, 3])
def test_accumulator_scaled_in_place(compare, rng, steps):
    a, b = rng.standard_normal((16, 32)).astype(np.float32), rng.standard_normal((32, 16)).astype(np.float32)
    compare(scaled, [a, b, np.zeros((16, 16), np.float32), steps], {"M": 16, "K": 32})


def batched(a, b, c, B: tl.constexpr, M: tl.constexpr):
    h, i, j = tl.arange(0, B)[:, None, None], tl.arange(0, M)[None, :, None], tl.arange(0, M)[None, None, :]
    at = h * M * M + i * M + j
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_batches(compare, rng):
    a, b = (rng.standard_normal((4, 16, 16)).astype(np.float32) for _ in range(2))
    compare(batched, [a, b, np.zeros((4, 16, 16), np.float32)], {"B": 4, "M": 16})


def reused(a, c, M: tl.constexpr):
    i = tl.arange(0, M)
    at = i[:, None] * M + i[None, :]
    x = tl.load(a + at)
    y = tl.dot(x, tl.trans(x))
    z = tl.dot(y, x, y)
    tl.store(c + at, z + y + tl.trans(x))


def test_operands_are_used_again(compare, rng):
    compare(reused, [rng.standard_normal((16, 16)).astype(np.float32), np.zeros((16, 16), np.float32)], {"M": 16})


def shared_operands(a, b, o, N: tl.constexpr, IS_BYTES: tl.constexpr):
    """One tile is both operands of several products, transposed or not, before and in a loop, and is read besides."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    left = tl.load(a + at)
    acc_type = tl.int32 if IS_BYTES else tl.float32
    acc = tl.dot(tl.trans(left), left, out_dtype=acc_type)
    for step in range(3):
        right = tl.load(b + step * N * N + at)
        acc = tl.dot(left, tl.trans(right), acc, out_dtype=acc_type)
        acc = tl.dot(tl.trans(right), left, acc, out_dtype=acc_type)
        if step == 1:
            acc = tl.dot(right, right, acc, out_dtype=acc_type)
    tl.store(o + at, acc + left.to(acc_type))


@pytest.mark.parametrize("n", [2, 8, 16, 32])
@pytest.mark.parametrize("is_bytes", [False, True])
def test_operands_that_several_products_share(compare, rng, bfloat16, n, is_bytes):
    dtype, total = (np.int8, np.int32) if is_bytes else (bfloat16, np.float32)
    a, b = (rng.integers(-128, 128, shape).astype(dtype) for shape in ((n, n), (3 * n, n)))
    compare(shared_operands, [a, b, np.full((n, n), 77, total)], {"N": n, "IS_BYTES": is_bytes})


def batches(a, b, o, B: tl.constexpr, N: tl.constexpr):
    i, j, k = tl.arange(0, B), tl.arange(0, N), tl.arange(0, N)
    at = i[:, None, None] * N * N + j[None, :, None] * N + k[None, None, :]
    tl.store(o + at, tl.dot(tl.load(a + at), tl.load(b + at)))


def test_batches_of_bfloat16(compare, rng, bfloat16):
    a, b = (rng.integers(-9, 10, (4, 16, 16)).astype(bfloat16) for _ in range(2))
    compare(batches, [a, b, np.full((4, 16, 16), 77, np.float32)], {"B": 4, "N": 16})


def sums_from_zero(a, b, o, steps, M: tl.constexpr, K: tl.constexpr):
    """Sums that begin with 0, in a loop that runs again over what it left there."""
    i, k = tl.arange(0, M), tl.arange(0, K)
    at = i[:, None] * M + i[None, :]
    left = tl.load(a + i[:, None] * K + k[None, :])
    right = tl.load(b + k[:, None] * M + i[None, :])
    total = tl.zeros((M, M), tl.float32)
    for _step in range(steps):
        total = tl.maximum(total, tl.dot(left, right))
        left = left + 1
    tl.store(o + at, total)


@pytest.mark.parametrize("dtype", [np.float32, "bfloat16"])
def test_sums_that_begin_with_zero(compare, rng, bfloat16, dtype):
    dtype = bfloat16 if dtype == "bfloat16" else dtype
    a, b = (rng.integers(-9, 10, shape).astype(dtype) for shape in ((16, 32), (32, 16)))
    compare(sums_from_zero, [a, b, np.full((16, 16), 77, np.float32), 3], {"M": 16, "K": 32}, tolerance=0)


def beside_other_tiles(a, b, o, p, steps, M: tl.constexpr, K: tl.constexpr):
    """Between the steps whose products are computed together the loop keeps other tiles in memory."""
    i, k = tl.arange(0, M), tl.arange(0, K)
    total, others = tl.zeros((M, M), tl.float32), tl.zeros((M,), tl.float32)
    for step in range(steps):
        left = tl.load(a + i[:, None] * K + k[None, :])
        sums = tl.cumsum(left.to(tl.float32), 0)
        others += tl.sum(tl.cumsum(sums + step, 1), 1)
        right = tl.load(b + k[:, None] * M + i[None, :]) + step
        total = tl.dot(left, right.to(left.dtype), total)
    tl.store(o + i[:, None] * M + i[None, :], total)
    tl.store(p + i, others)


@pytest.mark.parametrize("dtype", [np.float32, "bfloat16"])
@pytest.mark.parametrize("steps", [1, 4, 9])
def test_operands_of_several_steps_are_kept(compare, rng, bfloat16, dtype, steps):
    dtype = bfloat16 if dtype == "bfloat16" else dtype
    a, b = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((16, 32), (32, 16)))
    outputs = np.full((16, 16), 77, np.float32), np.full(16, 77, np.float32)
    compare(beside_other_tiles, [a, b, *outputs, steps], {"M": 16, "K": 32}, tolerance=0)


def by_rows_of_weights(a, w, c, N, K, stride, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """a @ w.T, as a linear layer has its weights: what is packed runs along k in memory."""
    m, n, k = tl.arange(0, M), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((M, BN), ACC)
    for start in range(0, K, BK):
        rest = k + start < K
        x = tl.load(a + m[:, None] * K + (start + k)[None, :], rest[None, :], other=0)
        y = tl.load(w + n[None, :] * stride + (start + k)[:, None], rest[:, None] & (n < N)[None, :], other=0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
    tl.store(c + m[:, None] * N + n[None, :], acc, (n < N)[None, :])


@pytest.mark.parametrize("dtype", [np.int8, "bfloat16"])
@pytest.mark.parametrize("n, k, bn, bk", [(40, 100, 32, 64), (16, 33, 16, 16), (64, 64, 64, 32), (8, 40, 8, 8)])
def test_weights_by_rows(compare, rng, bfloat16, lower_python, lower_module, dtype, n, k, bn, bk):
    is_int = dtype == np.int8
    a, w = (
        rng.integers(-128 if is_int else -9, 128 if is_int else 9, (rows, k + gap)) for rows, gap in ((16, 0), (n, 5))
    )
    a, w = (x.astype(np.int8) if is_int else x.astype(bfloat16) for x in (a, w))
    c = np.zeros((16, n), np.int32 if is_int else np.float32)
    constexprs = {"M": 16, "BN": bn, "BK": bk, "ACC": tl.int32 if is_int else tl.float32}
    made = compare(by_rows_of_weights, [a, w, c, n, k, k + 5], constexprs, grid=(-(-n // bn),))[2]
    np.testing.assert_array_equal(made, a.astype(np.float64) @ w[:, :k].astype(np.float64).T)


@pytest.mark.parametrize("dtype", [np.int8, "bfloat16"])
def test_weights_by_rows_are_packed_as_they_are_loaded(lower_python, bfloat16, dtype):
    """Also where A's tile has the same shape."""
    is_int = dtype == np.int8
    x = np.zeros((64, 64), np.int8 if is_int else bfloat16)
    args = [x, x, np.zeros((64, 64), np.int32 if is_int else np.float32), 64, 64, 64]
    constexprs = {"M": 64, "BN": 64, "BK": 64, "ACC": tl.int32 if is_int else tl.float32}
    target = cpu_target("emeraldrapids", "")
    plan = plan_function(kernel_of(lower_python(by_rows_of_weights, args, constexprs), target))
    (dot,) = dots_of(plan.body)
    assert dot.packed is None
    (nest,) = (nest for nest in nests_of(plan.body) for root in nest.roots if getattr(root, "value", None) is dot.op.b)
    assert len(nest.roots) == 1


def squares(a, b, o, p, steps, N: tl.constexpr):
    """Tiles that are both operands, or several products', or what the loop overwrites, in a loop that may not run."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    acc, other = tl.zeros((N, N), tl.float32), tl.zeros((N, N), tl.float32)
    for step in range(steps):
        x = tl.load(a + i * N + j, mask=j < N - step, other=2)
        y = tl.load(b + step * N * N + j * N + i, mask=i < N - 1, other=1)
        acc = tl.dot(x, x, acc)
        other = tl.dot(x, y, tl.dot(y, x, other))
        tl.store(a + i * N + j, (x + y).to(a.dtype.element_ty))
        acc = tl.dot(tl.load(a + i * N + j), y, acc)
    tl.store(o + i * N + j, acc)
    tl.store(p + i * N + j, other)


@pytest.mark.parametrize("dtype", [np.float32, "bfloat16"])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_squares_that_are_overwritten(compare, rng, bfloat16, dtype, steps):
    type = bfloat16 if dtype == "bfloat16" else dtype
    a, b = (rng.integers(-2, 3, shape).astype(type) for shape in ((32, 32), (3, 32, 32)))
    compare(squares, [a, b, *(np.full((32, 32), 7, np.float32) for _ in range(2)), steps], {"N": 32}, tolerance=0)


def from_rows(a, b, c, first, stride, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A is read where it is, in rows that begin anywhere: of a loop's product, and of one by itself."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for step in range(steps):
        x = tl.load(a + first + m[:, None] * stride + (step * K + k)[None, :])
        acc = tl.dot(x, tl.load(b + (step * K + k)[:, None] * N + n[None, :]), acc)
    once = tl.dot(tl.load(a + first + m[:, None] * stride + k[None, :]), tl.load(b + k[:, None] * N + n[None, :]))
    tl.store(c + m[:, None] * N + n[None, :], acc + once)


@pytest.mark.parametrize("dtype", [np.float32, "bfloat16"])
@pytest.mark.parametrize("m, k, steps, gap", [(16, 16, 5, 1), (8, 64, 3, 0), (32, 128, 2, 7), (16, 32, 0, 3)])
def test_rows_that_begin_anywhere(compare, rng, bfloat16, dtype, m, k, steps, gap):
    stride = k * max(steps, 1) + gap
    a, b = rng.integers(-9, 9, 3 + m * stride - gap), rng.integers(-9, 9, (k * max(steps, 1), 32))
    a, b = (x.astype(bfloat16 if dtype == "bfloat16" else dtype) for x in (a, b))
    made = compare(from_rows, [a, b, np.zeros((m, 32), np.float32), 3, stride, steps], {"M": m, "N": 32, "K": k})[2]
    rows = np.stack([a[3 + row * stride :][: stride - gap] for row in range(m)]).astype(np.float64)
    exact = (rows @ b) * (steps > 0) + rows[:, :k] @ b[:k].astype(np.float64)
    np.testing.assert_array_equal(made, exact)


def test_rows_are_not_copied(lower_python):
    """On vectors; bytes are, which get an excess."""
    target = cpu_target("znver5", "")
    for name, type, total in (("float32", np.float32, tl.float32), ("int8", np.int8, tl.int32)):
        x = np.zeros((64, 64), type)
        function = kernel_of(lower_python(by_columns, [x, x, x], {"TOTAL": total, "N": 64}), target)
        plan = plan_function(function)
        read_directly(plan)
        (dot,) = (item for item in plan.body.items if isinstance(item, Dot))
        assert (dot.direct is not None) == (name == "float32")


def by_columns(a, b, c, N: tl.constexpr, TOTAL: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    total = tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j), out_dtype=TOTAL)
    tl.store(c + i * N + j, total.to(c.dtype.element_ty))


@pytest.mark.parametrize(
    ("cpu", "features", "name"),
    [
        ("znver5", "", "bf16 pairs"),
        ("emeraldrapids", "", "bf16 tiles"),
        ("emeraldrapids", "-amx-tile,-amx-bf16,-amx-int8", None),
    ],
)
def test_pairs_of_bf16_where_the_processor_is_not_made_with_tiles(lower_python, bfloat16, cpu, features, name):
    """Its pairs are slower than multiply-adds, whether or not a process may use the tiles."""
    a, c = np.zeros((32, 32), bfloat16), np.zeros((32, 32), np.float32)
    module = lower_python(product, [a, a, c], {"M": 32, "N": 32, "K": 32, "TRANSPOSED": False})
    function = kernel_of(module, cpu_target(cpu, features))
    (found,) = [product_of(op) for op in function.walk() if isinstance(op, DotOp)]
    assert (found and found.name) == name
