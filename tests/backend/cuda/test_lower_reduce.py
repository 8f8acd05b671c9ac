"""Reductions and scans: right for every number of warps and axis, replicas counted once, few instructions."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, instructions_with

import deuteron
import deuteron.language as tl
from deuteron.analysis.shared_memory.warp_parts import Way
from deuteron.emulator import profile

WARPS = (1, 2, 4, 8)


@deuteron.jit
def sum_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    total = tl.sum(tl.load(x + i[:, None] * N + j[None, :]), AXIS)
    tl.store(out + tl.arange(0, M if AXIS == 1 else N), total)


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 4), (16, 16), (64, 32), (4, 512), (256, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_sum(rng, num_warps, shape, axis):
    x = rng.integers(-100, 100, shape).astype(np.int32)
    out = np.zeros(shape[1 - axis], np.int32)
    emulate(sum_tile, x, out, M=shape[0], N=shape[1], AXIS=axis, num_warps=num_warps)
    np.testing.assert_array_equal(out, x.sum(axis))


@pytest.mark.parametrize(("columns", "conflicts"), [(32, 0), (64, 0), (128, 8)])
def test_parts_of_warps_are_exchanged_without_bank_conflicts(columns, conflicts):
    """A thread has eight columns beside each other; halves of 128 are converted, before they are widened, with some."""
    x, out = aligned(np.zeros(64 * columns, np.float16)), aligned(np.zeros(columns, np.float32))
    kernel = compile_for("cuda:90", sum_tile, x, out, M=64, N=columns, AXIS=0, num_warps=4)
    counted = profile(kernel.asm["ptx"], None, 1, 128, kernel.metadata.shared, (x, out)).lines().values()
    assert sum(line.shared_wavefronts for line in counted)
    assert sum(line.bank_conflicts for line in counted) == conflicts


@deuteron.jit
def sum_all(x, out, N: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, N)), 0))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
@pytest.mark.parametrize(("size", "num_warps"), [(1, 4), (16, 4), (128, 1), (1024, 8)])
def test_scalar(rng, dtype, size, num_warps):
    x = rng.integers(-8, 8, size).astype(dtype)
    out = np.zeros(1, dtype)
    emulate(sum_all, x, out, N=size, num_warps=num_warps)
    assert out[0] == x.sum()


def test_five_shuffles_and_one_barrier(rng):
    x, out = rng.standard_normal(1024).astype(np.float32), np.zeros(1, np.float32)
    kernel = emulate(sum_all, x, out, N=1024, num_warps=4)
    assert len(instructions_with(kernel, "shfl.sync.bfly")) == 5
    assert len(instructions_with(kernel, "bar.sync")) == 1
    assert len(instructions_with(kernel, "ld.shared.v4.b32")) == 1


def test_one_warp_needs_no_shared_memory(rng):
    x, out = rng.standard_normal(1024).astype(np.float32), np.zeros(1, np.float32)
    kernel = emulate(sum_all, x, out, N=1024, num_warps=1)
    assert not instructions_with(kernel, "shared") and kernel.metadata.shared == 0


@deuteron.jit
def argmax_rows(x, out, where, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    values, indices = tl.max(tl.load(x + i[:, None] * N + j[None, :]), 1, return_indices=True)
    tl.store(out + i, values)
    tl.store(where + i, indices)


@pytest.mark.parametrize("num_warps", WARPS)
def test_several_operands(rng, num_warps):
    x = rng.integers(0, 6, (8, 128)).astype(np.float32)
    out, where = np.zeros(8, np.float32), np.zeros(8, np.int32)
    emulate(argmax_rows, x, out, where, M=8, N=128, num_warps=num_warps)
    np.testing.assert_array_equal(out, x.max(1))
    np.testing.assert_array_equal(where, x.argmax(1))


@deuteron.jit
def _moments(mean, m2, weight, other_mean, other_m2, other_weight):
    delta, total = other_mean - mean, weight + other_weight
    part = tl.where(total == 0, 0.0, other_weight / total)
    return mean + delta * part, m2 + other_m2 + delta * delta * weight * part, total


@deuteron.jit
def moments(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    tile = tl.load(x + i[:, None] * N + tl.arange(0, N)[None, :])
    mean, m2, _ = tl.reduce((tile, tl.zeros_like(tile), tl.full((M, N), 1.0, tl.float32)), 1, _moments)
    tl.store(out + i, mean)
    tl.store(out + M + i, m2 / N)


@pytest.mark.parametrize(
    ("rows", "num_warps", "by_lanes"), [(1, 4, False), (1, 16, True), (1, 32, True), (2, 8, False), (2, 16, True)]
)
def test_lanes_combine_the_parts_of_many_warps(rng, rows, num_warps, by_lanes):
    """Where the function takes long: otherwise each thread would do 15 times what 4 steps do. Warps share the rows."""
    x, out = rng.standard_normal((rows, 2048)).astype(np.float32), np.full((2, rows), np.nan, np.float32)
    kernel = emulate(moments, x, out, M=rows, N=2048, num_warps=num_warps)
    np.testing.assert_allclose(out, [x.mean(1, np.float64), x.var(1, dtype=np.float64)], rtol=1e-5, atol=1e-6)
    steps = 5 + ((num_warps // rows).bit_length() - 1 if by_lanes else 0)
    assert len(instructions_with(kernel, "shfl.sync.bfly")) == 3 * steps
    assert len(instructions_with(kernel, "shfl.sync.idx")) == 3 * by_lanes


@deuteron.jit
def moments_of_columns(x, out, M: tl.constexpr, N: tl.constexpr):
    j = tl.arange(0, N)
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + j[None, :])
    weights = tl.full((M, N), 1.0, tl.float16).to(tl.float32)
    mean, m2, _ = tl.reduce((tile, tl.zeros_like(tile), weights), 0, _moments)
    tl.store(out + j, mean)
    tl.store(out + N + j, m2 / M)


def run_columns(rng, rows: int, columns: int, num_warps: int):
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    out = aligned(np.full((2, columns), np.nan, np.float32))
    kernel = emulate(moments_of_columns, aligned(x), out, M=rows, N=columns, num_warps=num_warps)
    np.testing.assert_allclose(out, [x.mean(0, np.float64), x.var(0, dtype=np.float64)], rtol=1e-5, atol=1e-6)
    return kernel


def test_parts_of_many_columns_are_shared_out(rng):
    """Of 64 columns each thread holds four. 512 have two parts of one column, and combine them and three times more."""
    kernel = run_columns(rng, 64, 64, num_warps=16)
    assert len(instructions_with(kernel, "bar.sync")) == 2
    assert len(instructions_with(kernel, "div.full")) == 13  # by threads 69


WAYS = {Way.THREADS: (1 << 30, 1 << 36), Way.LANES: (-(1 << 30), 1 << 36), Way.SHARED_OUT: (1 << 30, -(1 << 36))}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("rows", "columns", "num_warps"), [(64, 16, 16), (32, 4, 8), (16, 256, 2), (128, 1, 4), (8, 512, 4), (64, 64, 32)]
)
def test_every_way_to_combine_what_warps_have(rng, monkeypatch, way, rows, columns, num_warps):
    """More results than threads, fewer, and one; all of them as many parts as there are warps, or fewer."""
    shuffle, exchange = WAYS[way]
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    monkeypatch.setattr("deuteron.analysis.shared_memory.warp_parts.SHUFFLE_LATENCY", shuffle)
    monkeypatch.setattr("deuteron.analysis.shared_memory.warp_parts.EXCHANGE_LATENCY", exchange)
    run_columns(rng, rows, columns, num_warps)


@deuteron.jit
def lanes_of(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    mean, _, _ = tl.reduce((tl.load(x + i), tl.zeros((N,), tl.float32), tl.full((N,), 1.0, tl.float32)), 0, _moments)
    tl.store(out + i, mean + tl.zeros((N,), tl.float32))


@pytest.mark.parametrize("num_warps", [1, 4, 16])
def test_all_threads_have_the_same_result(rng, num_warps):
    """Each lane has its own operand first, and rounds otherwise: lanes of one warp had different results."""
    x, out = rng.standard_normal(1024).astype(np.float32), np.full(1024, np.nan, np.float32)
    emulate(lanes_of, x, out, N=1024, num_warps=num_warps)
    assert len(np.unique(out)) == 1


@deuteron.jit
def reduce_3d(x, out, AXIS: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i, j, k = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    tile = tl.load(x + i[:, None, None] * B * C + j[None, :, None] * C + k[None, None, :])
    if AXIS == 0:
        tl.store(out + j[:, None] * C + k[None, :], tl.max(tile, 0))
    elif AXIS == 1:
        tl.store(out + i[:, None] * C + k[None, :], tl.max(tile, 1))
    else:
        tl.store(out + i[:, None] * B + j[None, :], tl.max(tile, 2))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_three_dimensions(rng, axis):
    x = rng.standard_normal((4, 8, 16)).astype(np.float32)
    expected = x.max(axis)
    out = np.zeros(expected.shape, np.float32)
    emulate(reduce_3d, x, out, AXIS=axis, A=4, B=8, C=16, num_warps=4)
    np.testing.assert_array_equal(out, expected)


@deuteron.jit
def scan_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + offsets, tl.cumsum(tl.load(x + offsets), AXIS, reverse=REVERSE))


@pytest.mark.share(2)
@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("shape", [(1, 1), (2, 64), (64, 2), (32, 32), (1, 1024)])
@pytest.mark.parametrize(("axis", "reverse"), [(0, False), (1, False), (1, True), (0, True)])
def test_scan(rng, num_warps, shape, axis, reverse):
    x = rng.integers(-100, 100, shape).astype(np.int32)
    out = np.zeros(shape, np.int32)
    emulate(scan_tile, x, out, M=shape[0], N=shape[1], AXIS=axis, REVERSE=reverse, num_warps=num_warps)
    flipped = np.flip(x, axis) if reverse else x
    expected = flipped.cumsum(axis, dtype=np.int32)
    np.testing.assert_array_equal(out, np.flip(expected, axis) if reverse else expected)


@deuteron.jit
def last_nonzero(a, b):
    return tl.where(b != 0, b, a)


@deuteron.jit
def scan_last(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, last_nonzero))


@pytest.mark.parametrize("num_warps", WARPS)
def test_order_matters(rng, num_warps):
    x = rng.integers(0, 50, 512).astype(np.int32) * (rng.random(512) < 0.2)
    out = np.zeros(512, np.int32)
    emulate(scan_last, x.astype(np.int32), out, N=512, num_warps=num_warps)
    expected, last = [], 0
    for value in x:
        last = value or last
        expected.append(last)
    np.testing.assert_array_equal(out, expected)


@deuteron.jit
def branch_on_sum(x, y, least, out):
    i = tl.arange(0, 32)
    v = tl.load(x + i)
    total = tl.sum(v * tl.load(y + i), 0)
    if total > tl.load(least):
        tl.store(out, tl.sum(v, 0))


def sums_of_lanes(x, y):
    """What lanes would sum up, each the product that it has fused with the sum of the first two."""
    rounded, lanes = x * y, np.arange(32)
    sums = (x.astype(np.float64) * y + rounded[lanes ^ 1]).astype(np.float32)
    for bit in (2, 4, 8, 16):
        sums = sums + sums[lanes ^ bit]
    return sums


@pytest.mark.parametrize("num_warps", [1, 4])
def test_all_lanes_have_one_sum_of_products(rng, num_warps):
    """They go one way in a branch on it, in which they sum up again."""
    sums = np.zeros(32)
    while sums.max() == sums.min():
        x, y = rng.standard_normal((2, 32)).astype(np.float32)
        sums = sums_of_lanes(x, y)
    out = np.full(1, np.nan, np.float32)
    emulate(branch_on_sum, x, y, sums.min(keepdims=True).astype(np.float32), out, num_warps=num_warps)
    assert np.isnan(out[0]) or np.isclose(out[0], x.sum(), atol=1e-5)


def test_lanes_agree_on_a_sum_of_products_without_being_told():
    """What a lane has of another is rounded, and added to its own rounded product: five exchanges."""
    arrays = [aligned(np.zeros(32, np.float32)) for _ in range(4)]
    kernel = compile_for("cuda:90", branch_on_sum, *arrays, num_warps=1)
    assert not instructions_with(kernel, "shfl.sync.idx")
    assert len(instructions_with(kernel, "add.rn.f32")) == 5


@deuteron.jit
def first_of_greatest(x, i, y, j):
    is_first = (x > y) | ((x == y) & (i < j))
    return tl.where(is_first, x, y), tl.where(is_first, i, j)


@deuteron.jit
def last_of_greatest(x, i, y, j):
    is_last = (x < y) | ((x == y) & (j > i))
    return tl.where(is_last, y, x), tl.where(is_last, j, i)


@deuteron.jit
def last_number_of_greatest(x, i, y, j):
    is_first = (x > y) | ((x == y) & (i >= j))
    return tl.where(is_first, x, y), tl.where(is_first, i, j)


@deuteron.jit
def greatest(x, out, function: tl.constexpr, BACKWARDS: tl.constexpr):
    i, j = tl.arange(0, 16), tl.arange(0, 64)
    index = 63 - j if BACKWARDS else j
    value, at = tl.reduce((tl.load(x + i[:, None] * 64 + j), tl.broadcast_to(index[None, :], (16, 64))), 1, function)
    tl.store(out + i, value.to(tl.int32) * 64 + at)


@pytest.mark.parametrize("is_backwards", [False, True])
@pytest.mark.parametrize("function", [first_of_greatest, last_of_greatest, last_number_of_greatest])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_positions_of_ties(rng, function, is_backwards, num_warps):
    x, out = rng.integers(0, 4, (16, 64)).astype(np.float32), np.zeros(16, np.int32)
    emulate(greatest, x, out, function=function, BACKWARDS=is_backwards, num_warps=num_warps)
    at = np.arange(64)[:: -1 if is_backwards else 1]
    ties = x == x.max(1, keepdims=True)
    first, last = np.where(ties, at, 64).min(1), np.where(ties, at, -1).max(1)
    np.testing.assert_array_equal(out, x.max(1) * 64 + (first if function is first_of_greatest else last))


@pytest.mark.parametrize("is_backwards", [False, True])
def test_a_thread_does_not_compare_positions(is_backwards):
    """It combines four elements of each of two rows in their order along the axis, which positions have if they count
    up; lanes compare them, sixteen a row.
    """
    x, out = aligned(np.zeros((16, 64), np.float32)), aligned(np.zeros(16, np.int32))
    kernel = compile_for("cuda:90", greatest, x, out, function=first_of_greatest, BACKWARDS=is_backwards, num_warps=4)
    compared = len(instructions_with(kernel, "setp.lt."))
    assert compared > 8 if is_backwards else compared == 8


@deuteron.jit
def first_beside_a_sum(x, i, y, j):
    return tl.where(i < j, x, y), i + j


def test_sums_of_positions_are_compared():
    """What a thread has added up is no position: sixteen lanes, and four elements of each of two rows, compare."""
    x, out = aligned(np.zeros((16, 64), np.float32)), aligned(np.zeros(16, np.int32))
    kernel = compile_for("cuda:90", greatest, x, out, function=first_beside_a_sum, BACKWARDS=False, num_warps=4)
    assert len(instructions_with(kernel, "setp.lt.")) > 8
