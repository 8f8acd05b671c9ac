"""Blocks of tensors through descriptors, made in the kernel or given: edges, padding, ranks, reductions, loops."""

import ml_dtypes
import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.errors import LaunchError

pytestmark = pytest.mark.each_gpu

DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "float16", "bfloat16", "float32", "float64"]
FP8 = {"float8_e4m3fn": tl.float8e4nv, "float8_e5m2": tl.float8e5}


@triton.jit
def copy_kernel(x_ptr, out_ptr, M, N, stride, PADDING: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [stride, 1], [BLOCK_M, BLOCK_N], PADDING)
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [stride, 1], [BLOCK_M, BLOCK_N])
    offsets = [tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N]
    out.store(offsets, x.load(offsets))


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 16), (33, 41), (64, 96)])
def test_copy_stores_nothing_out_of_bounds(draw, poisoned, dtype, shape):
    """The columns from shape[1] to the stride keep what they held."""
    (rows, columns), stride = shape, shape[1] // 16 * 16 + 32
    x, out = draw(dtype, (rows, stride)), poisoned(dtype, (rows + 4, stride))
    expected = out.copy()
    expected[:rows, :columns] = x[:, :columns]
    grid = (triton.cdiv(rows, 16), triton.cdiv(columns, 32))
    copy_kernel[grid](x, out, rows, columns, stride, PADDING="zero", BLOCK_M=16, BLOCK_N=32)
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@triton.jit
def padding_kernel(x_ptr, out_ptr, M, N, row, column, PADDING: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK], PADDING)
    offsets = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out_ptr + offsets, x.load([row, column]))


@pytest.mark.share(2)
@pytest.mark.parametrize(("dtype", "padding"), [("float16", "zero"), ("float16", "nan"), ("float32", "nan")])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (-3, -8), (30, 40), (-16, 0), (100, 0), (5, 48)])
def test_padding(draw, poisoned, dtype, padding, row, column):
    x, out = draw(dtype, (37, 48)), poisoned(dtype, (16, 16))
    padding_kernel[(1,)](x, out, 37, 48, row, column, PADDING=padding, BLOCK=16)
    wide = np.full((37 + 200, 48 + 200), np.nan if padding == "nan" else 0, x.dtype)
    wide[100:137, 100:148] = x
    np.testing.assert_array_equal(out, wide[100 + row : 116 + row, 100 + column : 116 + column])


@pytest.mark.parametrize("name", FP8)
def test_fp8(rng, poisoned, name):
    x, out = rng.standard_normal((20, 48)).astype(getattr(ml_dtypes, name)), poisoned("float32", (32, 32))
    fp8_kernel[(1,)](TensorDescriptor.from_tensor(x, [32, 32]), out)
    expected = np.zeros((32, 32), np.float32)
    expected[:20] = x[:, 16:48].astype(np.float32)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def fp8_kernel(x_desc, out_ptr):
    offsets = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out_ptr + offsets, x_desc.load([0, 16]).to(tl.float32))


@triton.jit
def scale_kernel(x_desc, out_desc, factor):
    block = x_desc.block_shape
    offsets = [tl.program_id(0) * block[0], tl.program_id(1) * block[1]]
    tl.store_tensor_descriptor(out_desc, offsets, tl.load_tensor_descriptor(x_desc, offsets) * factor)


@pytest.mark.parametrize("shape", [(1, 8), (70, 72), (64, 128)])
def test_descriptors_as_arguments(draw, poisoned, shape):
    x, out = draw("float32", shape), poisoned("float32", shape)
    x_desc, out_desc = (TensorDescriptor.from_tensor(array, [32, 64]) for array in (x, out))
    scale_kernel[(triton.cdiv(shape[0], 32), triton.cdiv(shape[1], 64))](x_desc, out_desc, 3.0)
    np.testing.assert_array_equal(out, x * np.float32(3))


def test_an_argument_may_describe_a_part_of_an_array(draw, poisoned):
    """A transposed view's rows are far apart; sizes end before the array does."""
    x, out = draw("float32", (40, 64)), poisoned("float32", (32, 32))
    expected = out.copy()
    expected[:20, :24] = x[4:24, 8:32] * 2
    x_desc = TensorDescriptor(x[4:, 8:], [20, 24], [64, 1], [32, 32])
    scale_kernel[(1, 1)](x_desc, TensorDescriptor(out, [20, 24], [32, 1], [32, 32]), 2.0)
    np.testing.assert_array_equal(out.view(np.int32), expected.view(np.int32))


@triton.jit
def shape_kernel(x_desc, out_ptr):
    tl.store(out_ptr, x_desc.shape[0])
    tl.store(out_ptr + 1, x_desc.shape[1])
    tl.store(out_ptr + 2, x_desc.strides[0])
    tl.store(out_ptr + 3, x_desc.strides[1])


def test_shape_and_strides(draw, poisoned):
    out = poisoned("int64", 4)
    shape_kernel[(1,)](TensorDescriptor.from_tensor(draw("float16", (5, 24)), [8, 8]), out)
    assert out.tolist() == [5, 24, 24, 1]


@triton.jit
def ranks_kernel(x_desc, out_desc, OFFSETS: tl.constexpr):
    out_desc.store(OFFSETS, x_desc.load(OFFSETS))


@pytest.mark.parametrize(
    ("shape", "block", "offsets"),
    [
        ((100,), [64], (48,)),
        ((5, 6, 40), [2, 4, 32], (1, 3, 16)),
        ((3, 3, 4, 20), [1, 2, 4, 16], (2, 2, 1, 8)),
        ((2, 2, 3, 4, 16), [2, 1, 2, 4, 8], (0, 1, 2, 3, 8)),
    ],
)
def test_ranks(draw, poisoned, shape, block, offsets):
    x, out = draw("float32", shape), poisoned("float32", shape)
    expected = out.copy()
    ends = zip(offsets, block, shape, strict=True)
    inside = tuple(slice(max(o, 0), max(min(o + b, size), 0)) for o, b, size in ends)
    expected[inside] = x[inside]
    x_desc, out_desc = (TensorDescriptor.from_tensor(array, block) for array in (x, out))
    ranks_kernel[(1,)](x_desc, out_desc, OFFSETS=offsets)
    np.testing.assert_array_equal(out.view(np.int32), expected.view(np.int32))


@triton.jit
def unit_dims_kernel(x_desc, out_desc, sum_desc, OFFSETS: tl.constexpr, TO: tl.constexpr, SHAPE: tl.constexpr):
    x = x_desc.load(OFFSETS).reshape(SHAPE)
    out_desc.store(TO, (x * 2).reshape(out_desc.block_shape))
    sum_desc.atomic_add(TO, x.reshape(sum_desc.block_shape))


@pytest.mark.parametrize(
    ("shape", "block", "offsets"),
    [
        ((5, 20, 40), [1, 16, 32], (3, 8, 16)),
        ((2, 20, 3, 40), [1, 16, 1, 32], (1, -8, 2, 16)),
        ((2, 3, 40), [1, 1, 32], (1, 2, -16)),
        ((2, 20, 40), [1, 16, 32], (-1, 0, 0)),
    ],
)
def test_blocks_without_their_dimensions_of_extent_1(draw, poisoned, shape, block, offsets):
    x, out, total = draw("float32", shape), poisoned("float32", shape), np.zeros(shape, np.float32)
    to = tuple(max(offset, 0) for offset in offsets)
    described = [TensorDescriptor.from_tensor(array, block) for array in (x, out, total)]
    unit_dims_kernel[(1,)](*described, OFFSETS=offsets, TO=to, SHAPE=[extent for extent in block if extent > 1])
    wide = np.pad(x, [(32, 64)] * len(shape))
    loaded = wide[tuple(slice(32 + o, 32 + o + b) for o, b in zip(offsets, block, strict=True))]
    inside = tuple(slice(o, o + b) for o, b in zip(to, block, strict=True))
    loaded = loaded[tuple(slice(0, extent) for extent in out[inside].shape)]
    np.testing.assert_array_equal(out[inside], loaded * 2)
    np.testing.assert_array_equal(total[inside], loaded)


@triton.jit
def reduce_kernel(x_desc, out_desc, KIND: tl.constexpr):
    x = x_desc.load([0, 0])
    offsets = [0, tl.program_id(0) * 16]
    if KIND == "add":
        out_desc.atomic_add(offsets, x)
    elif KIND == "min":
        out_desc.atomic_min(offsets, x)
    elif KIND == "max":
        out_desc.atomic_max(offsets, x)
    elif KIND == "and":
        out_desc.atomic_and(offsets, x)
    elif KIND == "or":
        out_desc.atomic_or(offsets, x)
    else:
        out_desc.atomic_xor(offsets, x)


REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *((kind, dtype) for kind in REDUCTIONS for dtype in ("int32", "uint32")),
        *((kind, dtype) for kind in ("min", "max", "xor") for dtype in ("int64", "uint64")),
        *(("add", dtype) for dtype in ("uint64", "float16", "bfloat16", "float32")),
        *((kind, dtype) for kind in ("min", "max") for dtype in ("float16", "bfloat16")),
    ],
)
def test_reductions(draw, kind, dtype):
    """Blocks of two programs overlap; the second reaches over the edge."""
    is_float = "float" in dtype
    x = np.floor(draw(dtype, (16, 32), -9, 9)).astype(draw(dtype, 1).dtype) if is_float else draw(dtype, (16, 32))
    out = np.floor(draw(dtype, (16, 40), -9, 9)).astype(x.dtype) if is_float else draw(dtype, (16, 40))
    expected = out.copy()
    with np.errstate(over="ignore"):
        expected[:, :32] = REDUCTIONS[kind](expected[:, :32], x)
        expected[:, 16:] = REDUCTIONS[kind](expected[:, 16:], x[:, :24])
    descriptors = (TensorDescriptor.from_tensor(array, [16, 32]) for array in (x, out))
    reduce_kernel[(2,)](*descriptors, KIND=kind)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def extremum_kernel(x_ptr, out_ptr, columns, KIND: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])
    out = tl.make_tensor_descriptor(out_ptr, [16, columns], [32, 1], [16, 32])
    if KIND == "min":
        out.atomic_min([0, 0], x)
    else:
        out.atomic_max([0, 0], x)


@pytest.mark.parametrize("columns", [32, 23])
@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_extrema_of_floats_at_their_edges(dtype, kind, columns):
    """Each pair: a NaN gives way to a number, -0 is less than 0. Rows of 46 bytes are updated through pointers."""
    type = getattr(ml_dtypes, dtype, None) or np.dtype(dtype)
    edges = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -1.5, 6e-8], type)
    x, out = np.tile(edges, (16, 4)), np.tile(np.repeat(edges, 2)[:, None], (1, 32))
    expected = out.astype(np.float64)
    old, new = expected[:, :columns], x[:, :columns].astype(np.float64)
    of_zeros = np.where(np.signbit(old) == (kind == "min"), old, new)
    expected[:, :columns] = np.where(old == new, of_zeros, {"min": np.fmin, "max": np.fmax}[kind](old, new))
    extremum_kernel[(1,)](x, out, columns, KIND=kind)
    np.testing.assert_array_equal(out.astype(np.float64), expected)
    is_number = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(out)[is_number], np.signbit(expected)[is_number])


@triton.jit
def matmul_kernel(a_desc, b_desc, c_desc, K, BLOCK_K: tl.constexpr, TRANSPOSED: tl.constexpr):
    BLOCK_M: tl.constexpr = c_desc.block_shape[0]
    BLOCK_N: tl.constexpr = c_desc.block_shape[1]
    row, column = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([row, k])
        b = b_desc.load([column, k]).T if TRANSPOSED else b_desc.load([k, column])
        total = tl.dot(a, b, total)
    c_desc.store([row, column], total.to(tl.float16))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("M", "N", "K"), [(64, 64, 64), (100, 72, 136)])
def test_matmul(draw, poisoned, check_norm, M, N, K, transposed):
    a, b, c = draw("float16", (M, K)), draw("float16", (K, N)), poisoned("float16", (M, N))
    given = np.ascontiguousarray(b.T) if transposed else b
    a_desc, c_desc = TensorDescriptor.from_tensor(a, [64, 32]), TensorDescriptor.from_tensor(c, [64, 64])
    b_desc = TensorDescriptor.from_tensor(given, [64, 32] if transposed else [32, 64])
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    matmul_kernel[grid](a_desc, b_desc, c_desc, K, BLOCK_K=32, TRANSPOSED=transposed)
    check_norm(c, a.astype(np.float64) @ b.astype(np.float64), 1e-3)


@triton.jit
def groups_kernel(x_ptr, out_ptr, sizes_ptr, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """The base of a descriptor depends on what is loaded, so that only pointers can do it."""
    start = 0
    for group in range(GROUPS):
        size = tl.load(sizes_ptr + group)
        x = tl.make_tensor_descriptor(x_ptr + start * BLOCK, [size, BLOCK], [BLOCK, 1], [16, BLOCK])
        out = tl.make_tensor_descriptor(out_ptr + start * BLOCK, [size, BLOCK], [BLOCK, 1], [16, BLOCK])
        for row in range(0, size, 16):
            out.store([row, 0], x.load([row, 0]) + group)
        start += size


def test_descriptors_of_what_is_loaded(draw, poisoned):
    sizes = np.array([3, 0, 30, 16], np.int32)
    total = int(sizes.sum())
    x, out = draw("float32", (total, 32)), poisoned("float32", (total, 32))
    groups_kernel[(1,)](x, out, sizes, GROUPS=4, BLOCK=32)
    group = np.repeat(np.arange(4), sizes).astype(np.float32)
    np.testing.assert_array_equal(out, x + group[:, None])


@triton.jit
def persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Descriptors made in the kernel, tiles one after the other."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    columns = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BLOCK_M) * columns, tl.num_programs(0), flatten=True):
        row, column = tile // columns * BLOCK_M, tile % columns * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(tl.cdiv(K, BLOCK_K)):
            a, b = a_desc.load([row, k * BLOCK_K]), b_desc.load([column, k * BLOCK_K])
            total = tl.dot(a, b.T, total)
        c_desc.store([row, column], total.to(tl.float16))


@pytest.mark.share(3)
@pytest.mark.parametrize("num_stages", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["float16", "float8_e4m3fn"])
def test_persistent_matmul(rng, poisoned, check_norm, dtype, num_stages):
    M, N, K = 130, 72, 176
    a, b = (rng.standard_normal(shape).astype(getattr(ml_dtypes, dtype, dtype)) for shape in ((M, K), (N, K)))
    c = poisoned("float16", (M, N))
    options = {"num_warps": 4, "num_stages": num_stages}
    persistent_kernel[(2,)](a, b, c, M, N, K, BLOCK_M=64, BLOCK_N=32, BLOCK_K=64, **options)
    check_norm(c, a.astype(np.float64) @ b.astype(np.float64).T, 2e-3)


@triton.jit
def attention_kernel(q_desc, k_desc, v_desc, out_desc, n, scale, CAUSAL: tl.constexpr, STAGES: tl.constexpr):
    """Heads one below the other, as Triton's tutorial has them; the scale is in base 2."""
    ROWS: tl.constexpr = q_desc.block_shape[0]
    COLUMNS: tl.constexpr = k_desc.block_shape[0]
    DEPTH: tl.constexpr = q_desc.block_shape[1]
    start, head = tl.program_id(0) * ROWS, tl.program_id(1) * n
    rows, columns = start + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    q = q_desc.load([head + start, 0])
    best, total = tl.full((ROWS,), float("-inf"), tl.float32), tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DEPTH), tl.float32)
    end = start + ROWS if CAUSAL else n
    for i in tl.range(0, end, COLUMNS, num_stages=STAGES):
        scores = tl.dot(q, k_desc.load([head + i, 0]).T) * scale
        if CAUSAL:
            scores = tl.where(rows[:, None] >= i + columns[None, :], scores, float("-inf"))
        new = tl.maximum(best, tl.max(scores, 1))
        p, shrink = tl.exp2(scores - new[:, None]), tl.exp2(best - new)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), v_desc.load([head + i, 0]), acc * shrink[:, None])
        best = new
    out_desc.store([head + start, 0], (acc / total[:, None]).to(tl.float16))


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("causal", "num_stages", "num_warps"), [(False, 2, 4), (True, 3, 4), (True, 2, 8), (False, 1, 4)]
)
def test_attention(draw, poisoned, check_norm, causal, num_stages, num_warps):
    heads, n, depth = 2, 128, 64
    q, k, v = (draw("float16", (heads * n, depth)) for _ in range(3))
    out, rows = poisoned("float16", (heads * n, depth)), 16 * num_warps
    descriptors = [
        TensorDescriptor.from_tensor(x, [size, depth]) for x, size in ((q, rows), (k, 32), (v, 32), (out, rows))
    ]
    options = {"CAUSAL": causal, "STAGES": num_stages, "num_warps": num_warps}
    attention_kernel[(n // rows, heads)](*descriptors, n, depth**-0.5 * 1.4426950408889634, **options)
    wide = [x.astype(np.float64).reshape(heads, n, depth) for x in (q, k, v)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) / depth**0.5
    if causal:
        scores = np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ wide[2]
    check_norm(out, expected.reshape(heads * n, depth), 2e-3)


@triton.jit
def specialized_kernel(a_desc, b_desc, c_desc, M, N, K):
    BLOCK_M: tl.constexpr = c_desc.block_shape[0]
    BLOCK_N: tl.constexpr = c_desc.block_shape[1]
    BLOCK_K: tl.constexpr = a_desc.block_shape[1]
    columns = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * columns
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True, warp_specialize=True):
        row, column = tile // columns * BLOCK_M, tile % columns * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            total = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, total)
        c_desc.store([row, column], total.to(tl.float16))


def test_specialized_matmul(draw, poisoned, check_norm):
    M, N, K = 200, 104, 168
    a, b, c = draw("float16", (M, K)), draw("float16", (N, K)), poisoned("float16", (M, N))
    descriptors = [TensorDescriptor.from_tensor(x, block) for x, block in ((a, [64, 32]), (b, [32, 32]), (c, [64, 32]))]
    specialized_kernel[(3,)](*descriptors, M, N, K, num_warps=4, num_stages=3)
    check_norm(c, a.astype(np.float64) @ b.astype(np.float64).T, 1e-3)


@triton.jit
def rows_kernel(x_desc, out_ptr, rows_ptr, M, N, column, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.load(rows_ptr + tl.arange(0, COUNT))
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [N, 1], [1, BLOCK])
    out.scatter(x_desc.gather(rows, column), rows, column)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("column", [0, 5, 24, -3])
def test_rows_at_offsets(rng, draw, poisoned, dtype, column):
    """Rows before and after the array, and columns, are neither read nor written."""
    x, out = draw(dtype, (37, 48)), poisoned(dtype, (30, 48))
    rows = np.concatenate([rng.permutation(40)[:12], [-1, 37, 2**31 - 1, -(2**31)]]).astype(np.int32)
    block = max(32, 16 // x.itemsize)
    rows_kernel[(1,)](TensorDescriptor.from_tensor(x, [1, block]), out, rows, 30, 48, column, COUNT=16, BLOCK=block)
    expected, columns = poisoned(dtype, (30, 48)), slice(max(column, 0), min(column + block, 48))
    for row in rows[(rows >= 0) & (rows < 30)]:
        expected[row, columns] = x[row, columns]
    np.testing.assert_array_equal(out.view(np.uint8), expected.view(np.uint8))


@triton.jit
def gather_kernel(x_ptr, out_ptr, rows_ptr, M, N, column, PADDING: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [1, 16], PADDING)
    tile = x.gather(tl.load(rows_ptr + tl.arange(0, 4)), column)
    tl.store(out_ptr + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :], tile)


@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_padding_of_rows(draw, poisoned, padding):
    x, out, rows = draw("float32", (9, 24)), poisoned("float32", (4, 16)), np.array([8, -1, 3, 9], np.int8)
    gather_kernel[(1,)](x, out, rows, 9, 24, 11, PADDING=padding)
    expected = np.full((4, 16), np.nan if padding == "nan" else 0, np.float32)
    expected[0, :13], expected[2, :13] = x[8, 11:], x[3, 11:]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def pick(first, second, flag):
    return first if flag > 1 else second


@triton.jit
def carried_kernel(x_desc, y_ptr, out_ptr, M, N, steps, flag, B: tl.constexpr):
    """Made in a loop and in a branch, carried, given to a function, in a tuple."""
    y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [B, B])
    current, other = x_desc, y
    total = tl.zeros([B, B], tl.float32)
    for i in range(steps):
        total = total * 2 + current.load([i, 8 * i])
        current, other = other, current
        inner = tl.make_tensor_descriptor(y_ptr + i * N, [M - i, N], [N, 1], [B, B])
        total += inner.load([0, 0])
    if flag > 0:
        chosen = tl.make_tensor_descriptor(y_ptr, [flag + 1, N], [N, 1], [B, B])
        total += chosen.load([0, 8])
    else:
        chosen = current
    pair = (chosen, other)
    k = 0
    last = chosen
    while k < steps:
        last = pick(pair[0], last, flag)
        k += 2
    total += last.load([0, 0]) + chosen.shape[0].to(tl.float32)
    tl.store(out_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], total)


@pytest.mark.parametrize("flag", [0, 1, 3])
def test_descriptors_are_carried(draw, poisoned, flag):
    x, y, out = draw("float32", (12, 32)), draw("float32", (11, 32)), poisoned("float32", (8, 8))
    carried_kernel[(1,)](TensorDescriptor.from_tensor(x, [8, 8]), y, out, 11, 32, 3, flag, B=8)

    def load(array, row, column):
        wide = np.zeros((64, 64), np.float32)
        wide[: array.shape[0], : array.shape[1]] = array
        return wide[row : row + 8, column : column + 8]

    total, current, other = np.zeros((8, 8), np.float32), x, y
    for i in range(3):
        total = total * 2 + load(current, i, 8 * i) + load(y[i:], 0, 0)
        current, other = other, current
    chosen = y[: flag + 1] if flag > 0 else current
    if flag > 0:
        total = total + load(chosen, 0, 8)
    total = total + load(chosen, 0, 0) + len(chosen)
    np.testing.assert_allclose(out, total, rtol=1e-5, atol=1e-5)


@triton.jit
def old_kernel(x_ptr, out_ptr, M, N):
    """As Triton 3.2 said it."""
    x = tl._experimental_make_tensor_descriptor(x_ptr, [M, N], [N, 1], [16, 16])
    out = tl._experimental_make_tensor_descriptor(out_ptr, [M, N], [N, 1], [16, 16])
    tl._experimental_descriptor_store(out, tl._experimental_descriptor_load(x, [0, 16], [16, 16], tl.float32), [0, 16])


def test_old_names(draw, poisoned):
    x, out = draw("float32", (9, 48)), poisoned("float32", (9, 48))
    expected = out.copy()
    expected[:, 16:32] = x[:, 16:32]
    old_kernel[(1,)](x, out, 9, 48)
    np.testing.assert_array_equal(out.view(np.int32), expected.view(np.int32))


@triton.jit
def branch_kernel(x_ptr, y_ptr, out_ptr, M, N, B: tl.constexpr):
    """Without rows there is no tensor to describe, and nothing is loaded."""
    x = tl.make_tensor_descriptor(x_ptr, [B, B], [B, 1], [B, B])
    tile = x.load([0, 0])
    if M > 0:
        y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [B, B])
        tile += y.load([0, 0])
    tl.store(out_ptr + tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :], tile)


@pytest.mark.parametrize("rows", [0, -3, 5])
def test_a_branch_that_is_not_taken_describes_anything(draw, poisoned, rows):
    x, y, out = draw("float32", (16, 16)), draw("float32", (5, 32)), poisoned("float32", (16, 16))
    branch_kernel[(1,)](x, y, out, rows, 32, B=16)
    expected = x.copy()
    expected[: max(rows, 0)] += y[: max(rows, 0), :16]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def long_kernel(x_ptr, out_ptr, N, offset, B: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [N], [1], [B])
    tl.store(out_ptr + tl.arange(0, B), x.load([offset * 16]))


@pytest.mark.parametrize("size", [2**31 - 1, 2**31, 2**31 + 3, 2**32 - 1, 2**40, 2**63 - 1, 2**63 + 5])
def test_sizes_beyond_32_bits(draw, poisoned, size):
    """They are more than any offset, not what is left of them in 32 bits."""
    x, out = draw("int32", 64), poisoned("int32", 16)
    long_kernel[(1,)](x, out, size, 2, B=16)
    np.testing.assert_array_equal(out, x[32:48])


@triton.jit
def bounded_kernel(x_ptr, out_ptr, M, N, B: tl.constexpr):
    """Blocks and rows of a matrix that may be empty."""
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [B, 1], [B, B])
    row = tl.make_tensor_descriptor(x_ptr, [M, N], [B, 1], [1, B])
    out = tl.make_tensor_descriptor(out_ptr, [M, N], [B, 1], [B, B])
    out.store([0, 0], x.load([0, 0]) + row.gather(tl.arange(0, B), 0))


@pytest.mark.parametrize(("rows", "columns"), [(-1, 16), (16, -1), (-(2**31), -5), (0, 16), (3, 5)])
def test_a_negative_size_is_that_of_nothing(draw, poisoned, executor, rows, columns):
    """Not of what lies beyond the arrays. TMA knows no such tensors."""
    x, out = draw("float32", (16, 16)), poisoned("float32", (16, 16))
    expected = out.copy()
    if executor == "cuda:90" and min(rows, columns) < 1:
        with pytest.raises(LaunchError, match="a size of it is"):
            bounded_kernel[(1,)](x, out, rows, columns, B=16)
        return
    bounded_kernel[(1,)](x, out, rows, columns, B=16)
    inside = slice(max(rows, 0)), slice(max(columns, 0))
    expected[inside] = 2 * x[inside]
    np.testing.assert_array_equal(out, expected)
