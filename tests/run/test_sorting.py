"""sort, topk, bitonic_merge, flip: every type, along every dimension, both ways, against NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.gpu.layouts.exchange_in_shared import ExchangeInShared


@triton.jit
def sort_kernel(x_ptr, out_ptr, SHAPE: tl.constexpr, DIM: tl.constexpr, DESCENDING: tl.constexpr):
    offsets = tl.reshape(tl.arange(0, SHAPE[0] * SHAPE[1] * SHAPE[2]), SHAPE)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.sort(x, DIM, DESCENDING))


def with_edges(draw, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers with many ties, extremes, infinities and both zeros."""
    x = draw(dtype, shape)
    if x.dtype.kind in "iu":
        x.flat[:7] = x.flat[7]
        x.flat[3::7], x.flat[5::7] = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
    elif x.dtype.kind != "b":
        for position, value in enumerate((np.inf, -np.inf, 0.0, 1.0)):
            x.flat[position::11] = value
    return x


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("dtype", "shape", "dim", "descending"),
    [
        ("float32", (1, 4, 64), None, False),
        ("int32", (2, 16, 4), 1, True),
        ("float16", (16, 2, 2), 0, False),
        ("bfloat16", (2, 2, 16), -1, True),
        ("int8", (2, 8, 8), -2, False),
        ("uint8", (1, 1, 128), 2, True),
        ("uint32", (4, 1, 32), 0, True),
        ("int64", (1, 2, 16), None, True),
        ("uint64", (1, 2, 16), None, False),
        ("float64", (1, 32, 1), 1, False),
        ("int16", (8, 1, 1), 2, False),
    ],
)
def test_sort(draw, poisoned, dtype, shape, dim, descending):
    x, out = with_edges(draw, dtype, shape), poisoned(dtype, shape)
    sort_kernel[(1,)](x, out, SHAPE=shape, DIM=dim, DESCENDING=descending)
    expected = np.sort(x, axis=-1 if dim is None else dim)
    np.testing.assert_array_equal(out, np.flip(expected, -1 if dim is None else dim) if descending else expected)


@triton.jit
def many_kernel(x_ptr, sorted_ptr, top_ptr, flip_ptr, merged_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, few = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)[None, :]
    x = tl.load(x_ptr + rows * N + columns)
    tl.store(sorted_ptr + rows * N + columns, x.sort(descending=True))
    tl.store(top_ptr + rows * K + few, tl.topk(x, K))
    tl.store(top_ptr + M * K + rows * K + few, tl.topk(x, K, descending=False))
    tl.store(top_ptr + 2 * M * K + rows, tl.topk(x, 1))
    tl.store(flip_ptr + rows * N + columns, x.flip(1))
    tl.store(flip_ptr + M * N + rows * N + columns, tl.flip(x, dim=0))
    halves = tl.sort(tl.reshape(x, (M, 2, N // 2)))
    rises_and_falls = tl.where((tl.arange(0, 2) == 1)[None, :, None], tl.flip(halves), halves)
    tl.store(merged_ptr + rows * N + columns, tl.bitonic_merge(tl.reshape(rises_and_falls, (M, N))))


def test_topk_flip_and_merge(draw, poisoned):
    dtype, m, n, k = "float32", 4, 16, 4
    x = with_edges(draw, dtype, (m, n))
    sorted_, flipped, merged = poisoned(dtype, (m, n)), poisoned(dtype, (2, m, n)), poisoned(dtype, (m, n))
    top = poisoned(dtype, 2 * m * k + m)
    many_kernel[(1,)](x, sorted_, top, flipped, merged, M=m, N=n, K=k)
    ascending = np.sort(x, axis=1)
    np.testing.assert_array_equal(sorted_, ascending[:, ::-1])
    np.testing.assert_array_equal(top[: m * k].reshape(m, k), ascending[:, : -k - 1 : -1])
    np.testing.assert_array_equal(top[m * k : 2 * m * k].reshape(m, k), ascending[:, :k])
    np.testing.assert_array_equal(top[2 * m * k :], ascending[:, -1])
    np.testing.assert_array_equal(flipped, [x[:, ::-1], x[::-1]])
    np.testing.assert_array_equal(merged, ascending)


@triton.jit
def argsort_kernel(x_ptr, values_ptr, indices_ptr, N: tl.constexpr):
    """Keys with their positions in the lower half of a word, as people write it."""
    i = tl.arange(0, N)
    keys = tl.load(x_ptr + i).to(tl.int32, bitcast=True)
    keys = tl.where(keys < 0, keys ^ 0x7FFFFFFF, keys)
    packed = (keys.to(tl.int64) << 32) | i.to(tl.int64)
    packed = tl.sort(packed)
    keys = (packed >> 32).to(tl.int32)
    tl.store(values_ptr + i, tl.where(keys < 0, keys ^ 0x7FFFFFFF, keys).to(tl.float32, bitcast=True))
    tl.store(indices_ptr + i, (packed & 0xFFFFFFFF).to(tl.int32))


def test_argsort(draw, poisoned):
    x, values, indices = draw("float32", 64), poisoned("float32", 64), poisoned("int32", 64)
    x[::5] = x[0]
    argsort_kernel[(1,)](x, values, indices, N=64)
    np.testing.assert_array_equal(values, np.sort(x))
    np.testing.assert_array_equal(indices, np.argsort(x, kind="stable"))


@triton.jit
def sides_kernel(x_ptr, out_ptr, N: tl.constexpr, DISTANCE: tl.constexpr):
    """The left and the right one of each pair, by sums of products of floats."""
    i, is_right = tl.arange(0, N), tl.arange(0, 2)[None, :, None]
    pairs = tl.reshape(tl.load(x_ptr + i), [N // (2 * DISTANCE), 2, DISTANCE])
    left = tl.broadcast_to(tl.sum(pairs * (1 - is_right), 1)[:, None, :], pairs.shape)
    right = tl.broadcast_to(tl.sum(pairs * is_right, 1)[:, None, :], pairs.shape)
    tl.store(out_ptr + i, tl.reshape(left, [N]))
    tl.store(out_ptr + N + i, tl.reshape(right, [N]))


@pytest.mark.parametrize(("n", "distance"), [(128, 1), (128, 16), (256, 128), (512, 64), (2, 1)])
def test_sides_of_pairs_by_masked_sums(draw, poisoned, n, distance):
    """0 times infinity is no number, as it is written."""
    x, out = draw("float32", n), poisoned("float32", (2, n))
    x[::7] = np.inf
    sides_kernel[(1,)](x, out, N=n, DISTANCE=distance)
    pairs = x.reshape(-1, 2, distance)
    with np.errstate(invalid="ignore"):
        expected = [
            (pairs * side).sum(1, keepdims=True) for side in (np.array([[[1.0], [0.0]]]), np.array([[[0.0], [1.0]]]))
        ]
    np.testing.assert_array_equal(out, [np.broadcast_to(side, pairs.shape).reshape(n) for side in expected])


@triton.jit
def exchange_by_masks(x, ids, n, falls, DISTANCE: tl.constexpr):
    """One step on values with their positions; both of a pair find out both, by sums of what is 0 elsewhere."""
    pairs: tl.constexpr = [x.numel // (2 * DISTANCE), 2, DISTANCE]
    is_right = tl.arange(0, 2)[None, :, None]
    bits = tl.reshape(x, pairs).to(tl.int32, bitcast=True)
    left = tl.broadcast_to(tl.sum(bits * (1 - is_right), 1)[:, None, :], pairs)
    right = tl.broadcast_to(tl.sum(tl.where(is_right == 1, bits, 0), 1, keep_dims=True), pairs)
    left, right = tl.reshape(left, x.shape), tl.reshape(right, x.shape)
    places = tl.reshape(ids, pairs)
    left_id = tl.broadcast_to(tl.sum(places * (1 - is_right).to(places.dtype), 1)[:, None, :], pairs).reshape(x.shape)
    right_id = tl.broadcast_to(tl.sum(places * is_right.to(places.dtype), 1)[:, None, :], pairs).reshape(x.shape)
    lhs, rhs = left.to(tl.float32, bitcast=True), right.to(tl.float32, bitcast=True)
    both_nan = (lhs != lhs) & (rhs != rhs)
    is_larger = (lhs > rhs) | ((lhs != lhs) & (rhs == rhs)) | (((lhs == rhs) | both_nan) & (left_id > right_id))
    is_larger = ((right_id < n) > (left_id < n)) | (((right_id < n) == (left_id < n)) & is_larger)
    swaps = (is_larger ^ falls).to(tl.int1)
    sorted = x.to(tl.int32, bitcast=True) ^ tl.where(swaps, left ^ right, 0)
    return sorted.to(tl.float32, bitcast=True), ids ^ tl.where(swaps, left_id ^ right_id, 0)


@triton.jit
def argsort_by_masks_kernel(
    x_ptr, values_ptr, indices_ptr, n, M: tl.constexpr, N: tl.constexpr, LOG: tl.constexpr, INDEX: tl.constexpr
):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * n + columns, mask=columns < n, other=0)
    ids = tl.broadcast_to(columns.to(INDEX), (M, N))
    for doubling in tl.static_range(1, LOG + 1):
        if doubling < LOG:
            runs: tl.constexpr = [M * N // (2 << doubling), 2, 1 << doubling]
            falls = tl.reshape(tl.broadcast_to(tl.arange(0, 2)[None, :, None], runs), x.shape)
        else:
            falls = False
        for step in tl.static_range(doubling):
            x, ids = exchange_by_masks(x, ids, n, falls, 1 << (doubling - step - 1))
    tl.store(values_ptr + rows * n + columns, x, columns < n)
    tl.store(indices_ptr + rows * n + columns, ids.to(tl.int64), columns < n)


@pytest.mark.parametrize(("m", "n", "block", "index"), [(4, 27, 32, tl.int16), (1, 128, 128, tl.int32)])
def test_stable_argsort_by_masked_sums(draw, poisoned, m, n, block, index):
    """As PyTorch's Inductor writes it: NaN last, equal ones in order, padding behind all."""
    x = with_edges(draw, "float32", (m, n))
    x.flat[2::9] = np.nan
    values, indices = poisoned("float32", (m, n)), poisoned("int64", (m, n))
    argsort_by_masks_kernel[(1,)](x, values, indices, n, M=m, N=block, LOG=block.bit_length() - 1, INDEX=index)
    np.testing.assert_array_equal(indices, np.argsort(x, axis=1, kind="stable"))
    np.testing.assert_array_equal(values, np.sort(x, axis=1))


def network(x: np.ndarray) -> np.ndarray:
    """The bitonic network on one row, comparing as the language says: a NaN is never greater."""
    i, n = np.arange(len(x)), len(x)
    run = 2
    while run <= n:
        distance = run // 2
        while distance:
            partner, is_right = x[i ^ distance], (i & distance) != 0
            descends = (i & run) != 0 if run < n else np.zeros(n, bool)
            x = np.where((x > partner) != (descends ^ is_right), partner, x)
            distance //= 2
        run *= 2
    return x


def test_nan_goes_where_the_network_takes_it(draw, poisoned):
    x, out = draw("float32", (1, 1, 32)), poisoned("float32", (1, 1, 32))
    x[0, 0, [3, 17, 18]] = np.nan
    sort_kernel[(1,)](x, out, SHAPE=(1, 1, 32), DIM=None, DESCENDING=False)
    np.testing.assert_array_equal(out[0, 0], network(x[0, 0]))


@pytest.fixture
def no_shuffles(monkeypatch):
    """Lanes exchange elements through shared memory, as where a kernel has too many shuffles for ptxas."""

    def always(config: GPUConfig) -> ExchangeInShared:
        return ExchangeInShared(replace(config, machine=replace(config.machine, max_shuffles=0)))

    monkeypatch.setattr("deuteron.passes.gpu.ExchangeInShared", always)


@pytest.mark.parametrize(
    ("dtype", "shape", "num_warps"),
    [("float32", (1, 1, 256), 1), ("int8", (1, 4, 64), 2), ("int64", (2, 1, 64), 4), ("float16", (1, 1, 16), 2)],
)
@pytest.mark.usefixtures("no_shuffles")
def test_exchanges_through_shared_memory(draw, poisoned, dtype, shape, num_warps):
    x, out = with_edges(draw, dtype, shape), poisoned(dtype, shape)
    kernel = sort_kernel[(1,)](x, out, SHAPE=shape, DIM=2, DESCENDING=False, num_warps=num_warps)
    np.testing.assert_array_equal(out, np.sort(x))
    if kernel is not None and "ptx" in kernel.asm:
        assert "shfl" not in kernel.asm["ptx"]
