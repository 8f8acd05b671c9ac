"""Block pointers: which axes are checked, padding, ranks, types, strides; advanced in loops, branches, functions."""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu

DTYPES = ["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
AXES = [(), (0,), (1,), (0, 1), (1, 0)]


@triton.jit
def copy_kernel(
    x_ptr,
    out_ptr,
    M,
    N,
    stride,
    row,
    column,
    AXES: tl.constexpr,
    PADDING: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    x = tl.make_block_ptr(x_ptr, (M, N), (stride, 1), (row, column), (BM, BN), (1, 0))
    out = tl.make_block_ptr(out_ptr, (BM, BN), (BN, 1), (0, 0), (BM, BN), (1, 0))
    tl.store(out, tl.load(x, boundary_check=AXES, padding_option=PADDING))


def window(x, row, column, rows, columns, padding):
    """A part of an array, and the padding around it."""
    wide = np.full((x.shape[0] + 200, x.shape[1] + 200), np.nan if padding == "nan" else 0, x.dtype)
    wide[100:-100, 100:-100] = x
    return wide[100 + row : 100 + row + rows, 100 + column : 100 + column + columns]


@pytest.mark.share(2)
@pytest.mark.parametrize("padding", ["zero", "nan", ""])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (-3, -8), (30, 41), (-16, 0), (100, 0), (5, 48)])
def test_padding(draw, poisoned, padding, row, column):
    x, out = draw("float32", (37, 45)), poisoned("float32", (16, 32))
    copy_kernel[(1,)](x, out, 37, 45, 45, row, column, AXES=(0, 1), PADDING=padding, BM=16, BN=32)
    np.testing.assert_array_equal(out, window(x, row, column, 16, 32, padding))


@pytest.mark.parametrize("axes", AXES)
def test_only_named_axes_are_checked(draw, poisoned, axes):
    """The tensor is a part of a larger array: what is not checked is read from there."""
    whole = draw("float32", (40, 64))
    for row, column in [(3, 5), (15, 31), (24, 0)]:
        out = poisoned("float32", (16, 32))
        copy_kernel[(1,)](whole, out, 20, 40, 64, row, column, AXES=axes, PADDING="zero", BM=16, BN=32)
        seen = np.zeros((60, 100), np.float32)
        rows, columns = 20 if 0 in axes else 40, 40 if 1 in axes else 64
        seen[:rows, :columns] = whole[:rows, :columns]
        np.testing.assert_array_equal(out, seen[row : row + 16, column : column + 32])


@triton.jit
def store_kernel(x_ptr, out_ptr, M, N, stride, AXES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    offsets = (tl.program_id(0) * BM, tl.program_id(1) * BN)
    x = tl.make_block_ptr(x_ptr, (M, N), (stride, 1), offsets, (BM, BN), (1, 0))
    out = tl.make_block_ptr(out_ptr, (M, N), (stride, 1), offsets, (BM, BN), (1, 0))
    out.store(tl.load(x, boundary_check=(0, 1)), boundary_check=AXES)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (33, 41)])
def test_stores_nothing_out_of_bounds(draw, poisoned, dtype, shape):
    (rows, columns), stride = shape, 50
    x, out = draw(dtype, (rows, stride)), poisoned(dtype, (rows + 4, stride))
    expected = out.copy()
    expected[:rows, :columns] = x[:, :columns]
    grid = (triton.cdiv(rows, 16), triton.cdiv(columns, 32))
    store_kernel[grid](x, out, rows, columns, stride, AXES=(0, 1), BM=16, BN=32)
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("axes", AXES)
def test_stores_check_only_named_axes(draw, poisoned, axes):
    x, out = draw("int16", (9, 50)), poisoned("int16", (16, 50))
    expected = out.copy()
    rows, columns = 9 if 0 in axes else 16, 20 if 1 in axes else 32
    expected[:rows, :columns] = 0
    expected[:9, :20] = x[:, :20]
    store_kernel[(1, 1)](x, out, 9, 20, 50, AXES=axes, BM=16, BN=32)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_fp8(rng, poisoned, name, padding):
    x, out = rng.standard_normal((20, 48)).astype(getattr(ml_dtypes, name)), poisoned("float32", (32, 32))
    fp8_kernel[(1,)](x, out, PADDING=padding)
    np.testing.assert_array_equal(out, window(x.astype(np.float32), 3, 30, 32, 32, padding))


@triton.jit
def fp8_kernel(x_ptr, out_ptr, PADDING: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (20, 48), (48, 1), (3, 30), (32, 32), (1, 0))
    out = tl.make_block_ptr(out_ptr, (32, 32), (32, 1), (0, 0), (32, 32), (1, 0))
    tl.store(out, tl.load(x, boundary_check=(0, 1), padding_option=PADDING).to(out.dtype.element_ty))


@triton.jit
def bool_kernel(x_ptr, out_ptr, N):
    x = tl.make_block_ptr(x_ptr, (N,), (1,), (0,), (32,), (0,))
    tl.store(
        tl.make_block_ptr(out_ptr, (N,), (1,), (0,), (32,), (0,)), tl.load(x, boundary_check=(0,)) == 0, None, (0,)
    )


@triton.jit
def ranks_kernel(x_ptr, out_ptr, A, B, C, D):
    x = tl.make_block_ptr(x_ptr, (A, B, C, D), (B * C * D, C * D, D, 1), (0, 1, 0, 2), (2, 2, 1, 4), order=(3, 2, 1, 0))
    out = tl.make_block_ptr(out_ptr, (2, 2, 1, 4), (8, 4, 4, 1), (0, 0, 0, 0), (2, 2, 1, 4), order=(3, 2, 1, 0))
    tl.store(out, tl.load(x.advance((1, 0, 1, 0)), boundary_check=(0, 1, 3)))


def test_four_dimensions(draw, poisoned):
    x, out = draw("int32", (2, 3, 2, 5)), poisoned("int32", (2, 2, 1, 4))
    ranks_kernel[(1,)](x, out, 2, 3, 2, 5)
    expected = np.zeros((2, 2, 1, 4), np.int32)
    expected[:1, :, :, :3] = x[1:, 1:3, 1:2, 2:]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def vector_kernel(x_ptr, out_ptr, first, N, stride, BLOCK: tl.constexpr):
    """Scalars for lists of one, as Triton takes them."""
    start = tl.program_id(0) * BLOCK
    x = tl.make_block_ptr(x_ptr + first, (N,), (stride,), (start,), (BLOCK,), (0,))
    out = tl.make_block_ptr(out_ptr, (N,), (1,), (start,), (BLOCK,), (0,))
    tl.store(out, tl.load(x, boundary_check=0), boundary_check=0)


@pytest.mark.parametrize("stride", [1, 3, -2, 0])
def test_strides(draw, poisoned, stride):
    x, out = draw("int32", 200), poisoned("int32", 41)
    first = 100 if stride < 0 else 0
    vector_kernel[(3,)](x, out, first, 41, stride, BLOCK=16)
    np.testing.assert_array_equal(out, x[first + stride * np.arange(41)])


@triton.jit
def transposed_kernel(x_ptr, out_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (N, M), (1, N), (0, 0), (BN, BM), (0, 1))
    out = tl.make_block_ptr(out_ptr, (N, M), (M, 1), (0, 0), (BN, BM), (1, 0))
    tl.store(out, tl.load(x, boundary_check=(0, 1)), boundary_check=(0, 1))


def test_transposed(draw, poisoned):
    x, out = draw("float32", (13, 27)), poisoned("float32", (27, 13))
    transposed_kernel[(1,)](x, out, 13, 27, BM=16, BN=32)
    np.testing.assert_array_equal(out, x.T)


@triton.jit
def moved(block, step):
    return tl.advance(block, (0, step)), block.advance([step, 0])


@triton.jit
def walk_kernel(x_ptr, y_ptr, out_ptr, M, N, steps, flag, B: tl.constexpr):
    """Loops in loops, a branch, a function, pointers that change places."""
    shape: tl.constexpr = (B, B)
    right = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (0, 0), shape, (1, 0))
    down = tl.make_block_ptr(y_ptr, (M, N), (N, 1), (0, 0), shape, (1, 0))
    total = tl.zeros(shape, tl.float32)
    for i in range(steps):
        if flag > i:
            right = tl.advance(right, (0, 1))
        else:
            right, down = down, right
        for _ in range(2):
            total += tl.load(right, boundary_check=(0, 1))
            right, _unused = moved(right, 2)
        pair = (right, down)
        _unused, down = moved(pair[1], i)
        total = total * 2 + tl.load(down, boundary_check=(0, 1))
    last = right if flag > 1 else down
    k = 0
    while k < steps:
        last = tl.advance(last, (1, -1))
        k += 2
    out = tl.make_block_ptr(out_ptr, (B, B), (B, 1), (0, 0), shape, (1, 0))
    tl.store(out, total + tl.load(last, boundary_check=(0, 1)))


@pytest.mark.parametrize("flag", [0, 2, 5])
def test_pointers_are_carried(draw, poisoned, flag):
    x, y, out = draw("float32", (20, 24)), draw("float32", (20, 24)), poisoned("float32", (8, 8))
    walk_kernel[(1,)](x, y, out, 20, 24, 4, flag, B=8)
    arrays, right, down = {"x": x, "y": y}, ("x", 0, 0), ("y", 0, 0)

    def load(pointer):
        return window(arrays[pointer[0]], pointer[1], pointer[2], 8, 8, "zero")

    total = np.zeros((8, 8), np.float32)
    for i in range(4):
        right, down = ((right[0], right[1], right[2] + 1), down) if flag > i else (down, right)
        for _ in range(2):
            total = total + load(right)
            right = (right[0], right[1], right[2] + 2)
        down = (down[0], down[1] + i, down[2])
        total = total * 2 + load(down)
    last = right if flag > 1 else down
    last = (last[0], last[1] + 2, last[2] - 2)
    np.testing.assert_allclose(out, total + load(last), rtol=1e-6)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    a = tl.make_block_ptr(a_ptr, (M, K), (am, ak), (row, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (bk, bn), (0, column), (BK, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        total += tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1), padding_option="zero"))
        a, b = tl.advance(a, (0, BK)), tl.advance(b, (BK, 0))
    c = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (row, column), (BM, BN), (1, 0))
    tl.store(c, total.to(c.dtype.element_ty), boundary_check=(0, 1))


@pytest.mark.share(2)
@pytest.mark.parametrize(("shape", "blocks"), [((40, 50, 70), (16, 16, 32)), ((80, 72, 96), (64, 64, 32))])
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(draw, poisoned, check_norm, shape, blocks, transposed):
    M, N, K = shape
    a, b, c = draw("float16", (M, K)), draw("float16", (K, N)), poisoned("float16", (M, N))
    given = np.ascontiguousarray(b.T) if transposed else b
    strides = (1, K) if transposed else (N, 1)
    BM, BN, BK = blocks
    matmul_kernel[(triton.cdiv(M, BM), triton.cdiv(N, BN))](a, given, c, M, N, K, K, 1, *strides, BM=BM, BN=BN, BK=BK)
    check_norm(c, a.astype(np.float64) @ b.astype(np.float64), 2e-3)


@triton.jit
def wide_kernel(x_ptr, out_ptr, M, N, row, column, OFFSET: tl.constexpr):
    """Offsets far from 0, from a base far before the array."""
    row = row.to(tl.int64)
    place = (row - 1).to(OFFSET)
    x = tl.make_block_ptr(x_ptr - row * 8, (row + M, N), (8, 1), (place, column), (16, 8), (1, 0))
    out = tl.make_block_ptr(out_ptr, (16, 8), (8, 1), (0, 0), (16, 8), (1, 0))
    tl.store(out, tl.load(tl.advance(x, (1, 0)), boundary_check=(0, 1)))


@pytest.mark.parametrize(("row", "offset"), [(2**31 - 5, tl.int32), (2**31 - 5, tl.int64), (2**40, tl.int64)])
def test_what_needs_64_bits(draw, poisoned, row, offset):
    """A block across 2^31, at an offset that has 32 bits, too."""
    x, out = draw("int32", (11, 8)), poisoned("int32", (16, 8))
    wide_kernel[(1,)](x, out, 11, 6, row, 1, OFFSET=offset)
    expected = np.zeros((16, 8), np.int32)
    expected[:11, :5] = x[:, 1:6]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("size", [0, -3])
def test_nothing_is_inside_of_an_empty_tensor(draw, poisoned, size):
    x, out = draw("float32", (16, 32)), poisoned("float32", (16, 32))
    copy_kernel[(1,)](x, out, size, 32, 32, 0, 0, AXES=(0, 1), PADDING="zero", BM=16, BN=32)
    assert not out.any()


def test_bools_are_bytes(rng, poisoned):
    x, out = rng.integers(0, 2, 20).astype(bool), poisoned("int8", 32)
    out[:] = 7
    bool_kernel[(1,)](x, out, 20)
    np.testing.assert_array_equal(out, [*(x == 0).astype(np.int8), *[7] * 12])


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, head, row, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Causal attention: a loop over the blocks left of the diagonal, and the masked ones."""
    start, base = tl.program_id(0) * BM, tl.program_id(1).to(tl.int64) * head
    q = tl.make_block_ptr(q_ptr + base, (length, D), (row, 1), (start, 0), (BM, D), (1, 0))
    k = tl.make_block_ptr(k_ptr + base, (D, length), (1, row), (0, 0), (D, BN), (0, 1))
    v = tl.make_block_ptr(v_ptr + base, (length, D), (row, 1), (0, 0), (BN, D), (1, 0))
    out = tl.make_block_ptr(out_ptr + base, (length, D), (row, 1), (start, 0), (BM, D), (1, 0))
    rows, columns = start + tl.arange(0, BM), tl.arange(0, BN)
    largest = tl.full([BM], -1e30, tl.float32)
    total, acc = tl.zeros([BM], tl.float32), tl.zeros([BM, D], tl.float32)
    tile = tl.load(q, boundary_check=(0,))
    for at in range(0, start + BM, BN):
        scores = tl.dot(tile, tl.load(k, boundary_check=(1,), padding_option="zero")) * scale
        scores = tl.where(rows[:, None] >= at + columns[None, :], scores, -1e30)
        new = tl.maximum(largest, tl.max(scores, 1))
        weights, shrink = tl.exp2(scores - new[:, None]), tl.exp2(largest - new)
        total = total * shrink + tl.sum(weights, 1)
        acc = tl.dot(weights.to(tl.float16), tl.load(v, boundary_check=(0,)), acc * shrink[:, None])
        largest = new
        k, v = tl.advance(k, (0, BN)), tl.advance(v, (BN, 0))
    tl.store(out, (acc / total[:, None]).to(out.dtype.element_ty), boundary_check=(0,))


def test_attention(draw, poisoned, check_norm):
    heads, length, dim = 2, 77, 16
    q, k, v = (draw("float16", (heads, length, dim)) for _ in range(3))
    out, scale = poisoned("float16", (heads, length, dim)), 1.4426950408889634 / dim**0.5
    attention_kernel[(triton.cdiv(length, 64), heads)](
        q, k, v, out, scale, length * dim, dim, length, D=dim, BM=64, BN=32
    )
    scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * scale
    weights = np.where(np.tril(np.ones((length, length), bool)), np.exp2(scores), 0)
    expected = weights @ v.astype(np.float64) / weights.sum(2, keepdims=True)
    check_norm(out, expected, 2e-3)
