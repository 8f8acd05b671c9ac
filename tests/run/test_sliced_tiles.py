"""Tiles that are computed slice by slice, in loops, give what they give at once: as small as they are here, too."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.passes.gpu.slices import costs, groups, loop_dots, slice_tiles
from deuteron.passes.gpu.slices.slice_tiles import SliceTiles

pytestmark = pytest.mark.each_gpu


@pytest.fixture(autouse=True)
def sliced(monkeypatch, executor):
    """However few registers there are."""
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=-(1 << 20)))
    monkeypatch.setattr(slice_tiles, "CROWDED_COST", 0)
    monkeypatch.setattr(slice_tiles, "SHARE_IN_CROWD", 0)
    monkeypatch.setattr(groups, "MANY", 2)
    monkeypatch.setattr(groups, "IN_SLICE", 1)
    monkeypatch.setattr(costs, "REGISTER_BITS", 64)
    monkeypatch.setattr(loop_dots, "MANY", 2)
    monkeypatch.setattr(loop_dots, "IN_ITERATION", 64)
    monkeypatch.setattr(loop_dots, "MANY_MATRICES", 2)
    monkeypatch.setattr(loop_dots, "MATRICES", 1)


@triton.jit
def normalize(x, w, out, mean, rows, columns, R: tl.constexpr, C: tl.constexpr):
    """Masks in both dimensions, a reduction, something loaded for all rows, a store in place."""
    i, j = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, C)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    at = i[:, None] * columns + j[None, :]
    tile = tl.load(x + at, mask=mask, other=0.0)
    weights = tl.load(w + j, mask=j < columns, other=0.0)
    average = tl.sum(tile, axis=1) / columns
    centered = tl.where(mask, tile - average[:, None], 0.0)
    tl.store(x + at, centered, mask=mask)
    tl.store(out + at, centered * weights[None, :] + i[:, None], mask=mask)
    tl.store(mean + i, average, mask=i < rows)


@pytest.mark.parametrize(("rows", "columns", "R", "C", "warps"), [(37, 21, 16, 32, 1), (16, 64, 16, 64, 2)])
def test_rows(draw, poisoned, check_norm, rows, columns, R, C, warps):
    x, w = draw("float32", (rows, columns)), draw("float32", columns)
    out, mean, was = poisoned("float32", (rows, columns)), poisoned("float32", rows), x.astype(np.float64)
    normalize[(triton.cdiv(rows, R),)](x, w, out, mean, rows, columns, R=R, C=C, num_warps=warps)
    average = was.mean(axis=1)
    check_norm(mean, average, 1e-5)
    check_norm(x, was - average[:, None], 1e-5)
    check_norm(out, (was - average[:, None]) * w + np.arange(rows)[:, None], 1e-5)


@triton.jit
def rotate(x, cos, sin, out, n, H: tl.constexpr, M: tl.constexpr, D: tl.constexpr):
    """Tiles of three dimensions, split and joined, in another layout where they are stored."""
    h, m, d = tl.arange(0, H), tl.arange(0, M), tl.arange(0, D)
    at = h[:, None, None] * (M * D) + m[None, :, None] * D + d[None, None, :]
    mask = (m < n)[None, :, None]
    a, b = tl.split(tl.reshape(tl.load(x + at, mask=mask, other=0.0), (H, M, D // 2, 2)))
    half = m[:, None] * (D // 2) + tl.arange(0, D // 2)[None, :]
    c, s = tl.load(cos + half)[None, :, :], tl.load(sin + half)[None, :, :]
    tl.store(out + at, tl.reshape(tl.join(a * c - b * s, a * s + b * c), (H, M, D)), mask=mask)


def test_rotations(draw, poisoned, check):
    H, M, D, n = 4, 8, 16, 7
    x, cos, sin = draw("float32", (H, M, D)), draw("float32", (M, D // 2)), draw("float32", (M, D // 2))
    out = poisoned("float32", (H, M, D))
    before = out.copy()
    rotate[(1,)](x, cos, sin, out, n, H=H, M=M, D=D, num_warps=1)
    a, b = (x[..., part::2].astype(np.float64) for part in range(2))
    exact = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(H, M, D)
    np.testing.assert_allclose(out[:, :n], exact[:, :n], rtol=1e-4, atol=1e-5)
    assert (out[:, n:].view(np.int32) == before[:, n:].view(np.int32)).all()


@triton.jit
def types(bytes, bits, longs, out, N: tl.constexpr):
    """Elements of every width, and pointers, in memory between a loop and what is done at once."""
    i, j = tl.arange(0, N), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    a = tl.load(bytes + at)
    odd = (a & 1) == 1
    b = tl.load(bits + at).to(tl.float32) * 2
    places = longs + tl.where(odd, at, at ^ 1)
    total = tl.cumsum(a.to(tl.int32), axis=1)
    c = tl.load(places)
    tl.store(out + at, tl.where(odd, c, -c) + total + b.to(tl.int64))


def test_types(draw, poisoned, check):
    N = 16
    a, b = draw("int8", (N, N)), draw("float16", (N, N), -100, 100)
    c, out = draw("int64", (N, N), -1000, 1000), poisoned("int64", (N, N))
    types[(1,)](a, b, c, out, N=N, num_warps=1)
    at = np.arange(N * N).reshape(N, N)
    odd = a & 1 == 1
    read = c.reshape(-1)[np.where(odd, at, at ^ 1)]
    check(
        out, np.where(odd, read, -read) + np.cumsum(a, axis=1, dtype=np.int32) + (b.astype(np.float32) * 2).astype(int)
    )


@triton.jit
def shifted(x, n, N: tl.constexpr):
    """What is stored is loaded at other places of the tile: all of it comes first."""
    i, j = tl.arange(0, N), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    tile = tl.load(x + at)
    tl.store(x + (N * N - 1 - at), tile * 2 + n)


def test_stores_after_all_loads(draw, check):
    x = draw("int32", (16, 16), -1000, 1000)
    expected = x.reshape(-1)[::-1].reshape(16, 16) * 2 + 5
    shifted[(1,)](x, 5, N=16, num_warps=1)
    check(x, expected)


@triton.jit
def powers(x, out, n, N: tl.constexpr):
    """Tiles that a loop carries, and a branch gives."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile, total = tl.load(x + at), tl.zeros((N, N), tl.float32)
    for k in range(n):
        total = total * 0.5 + tile * k
        if k % 2 == 1:
            total = total - tl.max(tile, axis=0)[None, :]
    tl.store(out + at, total)


def test_loops_and_branches(draw, poisoned, check_norm):
    x, out = draw("float32", (16, 16)), poisoned("float32", (16, 16))
    powers[(1,)](x, out, 5, N=16, num_warps=1)
    total = np.zeros((16, 16))
    for k in range(5):
        total = total * 0.5 + x.astype(np.float64) * k - (x.max(axis=0) if k % 2 else 0)
    check_norm(out, total, 1e-5)


@triton.jit
def flat(x, y, out, N: tl.constexpr):
    """Dimensions that become one, which has more slices than each."""
    at = tl.arange(0, N)
    a = tl.join(tl.load(x + at), tl.load(y + at))
    together = tl.reshape(tl.join(a, a + 1), (4 * N,))
    both = tl.arange(0, 4 * N)
    tl.store(out + both, together * tl.load(out + both))


def test_reshaped(draw, check):
    N = 64
    x, y, out = draw("int32", N, -1000, 1000), draw("int32", N, -1000, 1000), draw("int32", 4 * N, -1000, 1000)
    a = np.stack([x, y], axis=-1)
    expected = np.stack([a, a + 1], axis=-1).reshape(-1) * out
    flat[(1,)](x, y, out, N=N, num_warps=1)
    check(out, expected)


@triton.jit
def mirrored(x, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + (N * N - 1 - at), tl.load(x + at) * 3)


@pytest.mark.parametrize("in_place", [False, True])
def test_one_array_as_two_arguments(draw, poisoned, check, in_place):
    x = draw("int32", (16, 16), -1000, 1000)
    expected, out = x.reshape(-1)[::-1].reshape(16, 16) * 3, x if in_place else poisoned("int32", (16, 16))
    mirrored[(1,)](x, out, N=16, num_warps=1)
    check(out, expected)


@triton.jit
def after(a, b, c, d):
    return c + d * a, d * b


@triton.jit
def scanned(x, w, sums, last, M: tl.constexpr, N: tl.constexpr):
    """Scans of several values, one way and the other."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile, weights = tl.load(x + at), tl.load(w + at)
    rows = tl.cumsum(tile, axis=1, reverse=True)
    state, product = tl.associative_scan((tile, weights), 0, after)
    tl.store(sums + at, rows)
    tl.store(last + at, state + product)


def test_scans(draw, poisoned, check):
    M, N = 16, 32
    x, w = draw("int32", (M, N), -100, 100), draw("int32", (M, N), -3, 4)
    sums, last = poisoned("int32", (M, N)), poisoned("int32", (M, N))
    scanned[(1,)](x, w, sums, last, M=M, N=N, num_warps=1)
    check(sums, np.cumsum(x[:, ::-1], axis=1, dtype=np.int32)[:, ::-1])
    state, product, expected = x[0].copy(), w[0].copy(), np.empty_like(x)
    expected[0] = state + product
    for row in range(1, M):
        state, product = x[row] + w[row] * state, w[row] * product
        expected[row] = state + product
    check(last, expected)


@triton.jit
def gathered(x, index, out, ordered, M: tl.constexpr, N: tl.constexpr):
    """Rows permuted by numbers that are loaded, and sorted by a network."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    tl.store(out + at, tl.gather(tile, tl.load(index + at), 1))
    tl.store(ordered + at, tl.sort(tile, 1))


@pytest.mark.parametrize("warps", [1, 4])
def test_gathers(draw, poisoned, check, warps):
    M, N = 16, 32
    x, index = draw("int32", (M, N)), draw("int32", (M, N), 0, N - 1)
    out, ordered = poisoned("int32", (M, N)), poisoned("int32", (M, N))
    gathered[(1,)](x, index, out, ordered, M=M, N=N, num_warps=warps)
    check(out, np.take_along_axis(x, index, 1))
    check(ordered, np.sort(x, 1))


@triton.jit
def batched(x, y, z, out, B: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Dots of batches, of whole rows and columns in threads, and what is done with them."""
    batch = tl.arange(0, B)[:, None, None]
    i, j, k = tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :], tl.arange(0, K)
    a = tl.load(x + batch * N * K + i * K + k[None, None, :])
    b = tl.load(y + batch * N * K + k[None, :, None] * N + j)
    at = batch * N * N + i * N + j
    tl.store(out + at, tl.dot(a, b, tl.load(z + at), input_precision="ieee") * 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dots_of_batches(draw, poisoned, check_norm, dtype):
    B, N, K = 4, 16, 32
    x, y, z = draw(dtype, (B, N, K)), draw(dtype, (B, K, N)), draw(dtype, (B, N, N))
    out = poisoned(dtype, (B, N, N))
    batched[(1,)](x, y, z, out, B=B, N=N, K=K, num_warps=1)
    check_norm(out, (x.astype(np.float64) @ y + z) * 2, 1e-5)


@triton.jit
def multiplied(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, DTYPE: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    a, b = tl.load(x + i * K + k[None, :]), tl.load(y + k[:, None] * N + j)
    tl.store(out + i * N + j, tl.dot(a, b, out_dtype=DTYPE, input_precision="ieee"))


def test_dots_in_registers(draw, poisoned, check_norm, monkeypatch):
    """As where shared memory has no room for operands."""
    monkeypatch.setattr("deuteron.passes.gpu.dot_instructions.MAX_SHARE", 0)
    x, y, out = draw("float32", (32, 64)), draw("float32", (64, 16)), poisoned("float32", (32, 16))
    multiplied[(1,)](x, y, out, M=32, N=16, K=64, DTYPE=tl.float32, num_warps=1)
    check_norm(out, x.astype(np.float64) @ y, 1e-5)


def test_sums_of_few_bits_are_rounded_once(draw, poisoned, check):
    x, y, out = draw("float16", (8, 64), 1, 2), draw("float16", (64, 8), 1, 2), poisoned("float16", (8, 8))
    multiplied[(1,)](x, y, out, M=8, N=8, K=64, DTYPE=tl.float16, num_warps=1)
    sums = np.zeros((8, 8), np.float32)
    for k in range(64):
        sums = np.float32(sums + x[:, k, None].astype(np.float32) * y[None, k].astype(np.float32))
    np.testing.assert_allclose(out, sums.astype(np.float16), rtol=2**-10)


@triton.jit
def chained(x, y, out, steps, N: tl.constexpr, TRANSPOSED: tl.constexpr, DTYPE: tl.constexpr):
    """Operands of matrix instructions: loaded ahead, computed, transposed, and what another dot gave."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    square, total = i * N + j, tl.zeros((N, N), DTYPE)
    for step in range(steps):
        a = tl.load(x + step * N * N + (j * N + i if TRANSPOSED else square))
        total = tl.dot(a, tl.load(y + step * N * N + square), total, out_dtype=DTYPE)
    tl.store(out + square, total)
    low = (total % 4 if tl.int32 == DTYPE else total - tl.floor(total / 4) * 4).to(y.dtype.element_ty)
    total = tl.dot(low, tl.load(y + square) + low, tl.dot(tl.trans(low), low, out_dtype=DTYPE), out_dtype=DTYPE)
    tl.store(out + N * N + square, total)


@pytest.mark.share(6)
@pytest.mark.parametrize(("warps", "stages"), [(1, 1), (2, 3), (4, 2)])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_dots_by_matrix_instructions(rng, poisoned, check, dtype, transposed, warps, stages):
    N, steps, sums = 64, 3, "int32" if dtype == "int8" else "float32"
    x, y = (rng.integers(0, 4, (steps, N, N)).astype(dtype) for _ in range(2))
    out = poisoned(sums, (2, N, N))
    options = {"TRANSPOSED": transposed, "DTYPE": getattr(tl, sums), "num_warps": warps, "num_stages": stages}
    chained[(1,)](x, y, out, steps, N=N, **options)
    wide_x, wide_y = x.astype(np.int64), y.astype(np.int64)
    total = np.sum((wide_x.transpose(0, 2, 1) if transposed else wide_x) @ wide_y, 0)
    low = total % 4
    check(out, np.stack([total, low.T @ low + low @ (wide_y[0] + low)]).astype(sums))


@triton.jit
def recurrent(q, k, v, state, out, transposed, sums, steps, T: tl.constexpr, N: tl.constexpr, LATE: tl.constexpr):
    """A tile that a loop carries: an operand, what dots are added to; where LATE, used after that, and carried on."""
    i, j, row = tl.arange(0, T)[:, None], tl.arange(0, N)[None, :], tl.arange(0, N)[:, None]
    weights = tl.load(state + row * N + j)
    tile, older = weights.to(tl.float32), weights.to(tl.float32)
    for step in range(steps):
        at = (step * T + i) * N + j
        a, b, c = tl.load(q + at), tl.load(k + at), tl.load(v + at)
        early = tl.dot(b, weights.to(b.dtype))
        tl.store(out + at, tl.dot(a, tile.to(a.dtype)) + early * 2)
        product = tl.dot(tl.trans(b), c)
        tl.store(sums + step, tl.sum(tile * tl.trans(product)))
        tl.store(transposed + at, tl.dot(b, tl.trans(tile).to(b.dtype)))
        before = tile
        tile = tl.where(row % 3 != 0, tl.dot(tl.trans(a), b, product) - tile, 1.0)
        if LATE:
            tl.store(out + at, tl.dot(a, before.to(a.dtype)) + tl.sum(tile, 0)[None, :] + tl.sum(older, 0)[None, :])
            older = before
    tl.store(state + row * N + j, tile)


@pytest.mark.share(6)
@pytest.mark.parametrize(("N", "warps", "stages"), [(32, 1, 1), (64, 1, 3), (64, 2, 2), (64, 4, 2)])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_tiles_that_loops_carry(rng, poisoned, check, dtype, late, N, warps, stages):
    T, steps = 16, 3
    q, k, v = (rng.integers(0, 4, (steps, T, N)).astype(dtype) for _ in range(3))
    state, row = rng.integers(0, 4, (N, N)).astype("float32"), np.arange(N)[:, None]
    out, transposed, sums = (
        poisoned("float32", (steps, T, N)),
        poisoned("float32", (steps, T, N)),
        poisoned("float32", steps),
    )
    expected, tile, older = [], state.copy(), state
    for a, b, c in zip(*(x.astype(np.float32) for x in (q, k, v)), strict=True):
        product, before = b.T @ c, tile
        tile = np.where(row % 3 != 0, product + a.T @ b - tile, 1)
        both = a @ before + (tile.sum(0) + older.sum(0) if late else b @ state * 2)
        expected.append((both, b @ before.T, np.sum(before * product.T)))
        older = before
    recurrent[(1,)](
        q, k, v, state, out, transposed, sums, steps, T=T, N=N, LATE=late, num_warps=warps, num_stages=stages
    )
    for found, exact in zip((out, transposed, sums), zip(*expected, strict=True), strict=True):
        check(found, np.stack(exact).astype(np.float32))
    check(state, tile)


@triton.jit
def doubled(x, y, out, n, N: tl.constexpr):
    """A tile that is carried on twice."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    one, two = tl.load(x + at), tl.load(y + at)
    for step in range(n):
        one = tl.where(at % 3 != 0, one - two, one + step) * 2
        two = one
    tl.store(out + at, one)
    tl.store(out + N * N + at, two)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_tile_that_is_carried_on_twice(draw, poisoned, check, steps):
    N = 16
    x, y = (draw("int32", (N, N), -99, 99) for _ in range(2))
    out = poisoned("int32", (2, N, N))
    doubled[(1,)](x, y, out, steps, N=N, num_warps=1)
    one, two, at = x, y, np.arange(N * N).reshape(N, N)
    for step in range(steps):
        one = two = np.where(at % 3 != 0, one - two, one + step) * 2
    check(out, np.stack([one, two]))


@triton.jit
def farther(value, place, other_value, other_place):
    """Of two the larger one by its size, of equal ones the one that comes first, with constants and comparisons."""
    is_other = (tl.abs(other_value) > tl.abs(value)) | ((tl.abs(other_value) == tl.abs(value)) & (other_place < place))
    return tl.where(is_other, other_value, value), tl.where(is_other, other_place, place)


@triton.jit
def reduced(x, sums, columns, best, M: tl.constexpr, N: tl.constexpr):
    """Along the dimension of which a thread has most, along both, of one value and of two."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    tl.store(sums, tl.sum(tile * 2))
    tl.store(sums + 1, tl.min(tile))
    tl.store(columns + tl.arange(0, N), tl.max(tile + 1, axis=0))
    tl.store(best + tl.arange(0, M), tl.argmin(tile, axis=1))
    value, place = tl.reduce((tl.reshape(tile, (M * N,)), tl.reshape(at, (M * N,))), 0, farther)
    tl.store(sums + 2, value)
    tl.store(sums + 3, place)


@pytest.mark.parametrize(("M", "N", "warps"), [(64, 16, 1), (8, 128, 1), (32, 32, 4)])
def test_reductions_along_what_is_cut(draw, poisoned, check, M, N, warps):
    x = draw("int32", (M, N), -1000, 1000)
    sums, columns, best = poisoned("int32", 4), poisoned("int32", N), poisoned("int32", M)
    reduced[(1,)](x, sums, columns, best, M=M, N=N, num_warps=warps)
    place = np.argmax(np.abs(x.reshape(-1)))
    check(sums, np.array([x.sum() * 2, x.min(), x.reshape(-1)[place], place], np.int32))
    check(columns, x.max(0) + 1)
    check(best, np.argmin(x, 1).astype(np.int32))


@triton.jit
def updated(x, counts, most, flags, out, n, N: tl.constexpr):
    """Atomics, of which one gives what was there before, between loads and stores of the same arrays."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    old = tl.atomic_add(counts + at, tile + 1, mask=at % 3 != n)
    tl.store(out + at, tl.where(at % 3 != n, old * 2, 0))
    tl.atomic_max(most + at % 7, tile)
    tl.atomic_add(most + 7 + at * 0, tile, sem="relaxed")
    was = tl.atomic_cas(flags + at, tile, at)
    tl.store(x + at, was + tl.load(flags + (N * N - 1 - at)))


@pytest.mark.parametrize("warps", [1, 4])
def test_atomics(draw, poisoned, check, warps):
    N = 16
    x, counts, flags = (draw("int32", (N, N), -9, 9) for _ in range(3))
    most, out, at = (
        np.full(8, -100, np.int32),
        poisoned("int32", (N, N)),
        np.arange(N * N, dtype=np.int32).reshape(N, N),
    )
    before, was, first = x.copy(), flags.copy(), counts.copy()
    largest = [before.reshape(-1)[kind::7].max() for kind in range(7)]
    updated[(1,)](x, counts, most, flags, out, 1, N=N, num_warps=warps)
    on = at % 3 != 1
    check(counts, first + np.where(on, before + 1, 0))
    check(out, np.where(on, first * 2, 0))
    check(most, np.array([*largest, before.sum() - 100], np.int32))
    check(flags, np.where(was == before, at, was))
    check(x, was + flags.reshape(-1)[::-1].reshape(N, N))


@triton.jit
def one_of(a, b):
    return a - b if a > b else b * 2


@triton.jit
def in_place(x, seed, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    """What is known by its place alone is stored, and what is loaded there; loops in loops along three dimensions."""
    at = (tl.arange(0, A)[:, None, None] * B + tl.arange(0, B)[None, :, None]) * C + tl.arange(0, C)[None, None, :]
    tile = tl.load(x + at)
    mapped = tl.map_elementwise(one_of, tile, at % 5)
    tl.store(x + at, mapped * 3 + tl.permute(tl.reshape(at * at, (A, B, C)), (0, 1, 2)))
    tl.store(x + A * B * C + at, tl.randint(seed, at))


def test_stores_of_what_is_loaded_and_of_indices(draw, check):
    A, B, C = 4, 8, 16
    x, at = draw("int32", (2, A, B, C), -9, 9), np.arange(A * B * C, dtype=np.int32).reshape(A, B, C)
    before, drawn = x[0].copy(), np.zeros((2, A, B, C), np.int32)
    in_place[(1,)](x, 7, A=A, B=B, C=C, num_warps=1)
    check(x[0], np.where(before > at % 5, before - at % 5, at % 5 * 2) * 3 + at * at)
    in_place[(1,)](drawn, 7, A=A, B=B, C=C, num_warps=4)
    check(x[1], drawn[1])


@triton.jit
def ordered(x, up, down, columns, best, M: tl.constexpr, N: tl.constexpr):
    """Networks along what is cut: partners in the slice of an element, and in another one; beside other uses."""
    one, at = tl.arange(0, M * N), tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    row, tile = tl.load(x + one), tl.load(x + at)
    tl.store(up + one, tl.sort(row) * 2)
    tl.store(down + one, tl.sort(row, descending=True) + tl.gather(row, one ^ 1, 0))
    tl.store(columns + at, tl.sort(tile, 0))
    tl.store(best + tl.arange(0, 8), tl.topk(row, 8))


@pytest.mark.share(4)
@pytest.mark.parametrize(("M", "N", "warps"), [(16, 32, 1), (64, 4, 1), (16, 64, 4)])
def test_sorts_of_one_row(draw, poisoned, check, M, N, warps):
    x = draw("int32", (M, N), -99999, 99999)
    up, down, columns, best = (poisoned("int32", size) for size in (M * N, M * N, (M, N), 8))
    ordered[(1,)](x, up, down, columns, best, M=M, N=N, num_warps=warps)
    row = np.sort(x.reshape(-1))
    check(up, row * 2)
    check(down, row[::-1] + x.reshape(-1, 2)[:, ::-1].reshape(-1))
    check(columns, np.sort(x, 0))
    check(best, row[::-1][:8])


@triton.jit
def read_late(x, out, sums, n, N: tl.constexpr):
    """A tile that a loop carries is read after the next one is made, so cheaply that only crowded kernels slice it."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    for step in range(n):
        following = tl.exp(tile * 0.5) * 0.125 + step
        tl.debug_barrier()
        tl.store(sums + step * N + tl.arange(0, N), tl.sum(tile, axis=1))
        tile = following
    tl.store(out + at, tile)


def test_carried_tiles_that_are_read_late(draw, poisoned, check_norm, monkeypatch):
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=100))
    monkeypatch.setattr(slice_tiles, "LEAST_IN_CROWD", 0)
    N, steps = 32, 3
    x, out, sums = draw("float32", (N, N)), poisoned("float32", (N, N)), poisoned("float32", (steps, N))
    read_late[(1,)](x, out, sums, steps, N=N, num_warps=1)
    tile, expected = x.astype(np.float64), []
    for step in range(steps):
        expected.append(tile.sum(axis=1))
        tile = np.exp(tile * 0.5) * 0.125 + step
    check_norm(out, tile, 1e-5)
    check_norm(sums, np.stack(expected), 1e-5)


@triton.jit
def filled_between(x, y, places, before, out, N: tl.constexpr):
    """A store that has nothing to do with what comes before and after it but the order."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    pointers = y + tl.load(places + at)
    tl.store(before + at, tl.load(pointers))
    tl.debug_barrier()
    tile = tl.load(x + at)
    tl.store(pointers, 7)
    tl.store(out + at, (tile * 3 + 1) * tile)


@pytest.mark.parametrize("in_place", [False, True])
def test_stores_between_what_is_sliced(draw, poisoned, check, in_place):
    N = 16
    x, out, before = draw("int32", (N, N), -1000, 1000), poisoned("int32", (N, N)), poisoned("int32", (N, N))
    y, places, expected = x if in_place else x.copy(), np.arange(N * N, dtype=np.int32), (x * 3 + 1) * x
    was = y.copy()
    filled_between[(1,)](x, y, places, before, out, N=N, num_warps=1)
    check(before, was)
    check(out, expected)
    check(y, np.full((N, N), 7))


@triton.jit
def solved(x, y, out, steps, n, N: tl.constexpr):
    """Products by multiply-adds of tiles in shared memory, of what one branch computes and the other one leaves as it
    is, in a loop that carries it; each is stored where another one may be.
    """
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tile, other, none = tl.load(x + at), tl.load(y + at), tl.zeros((N, N), tl.float32)
    for step in range(steps):
        if step < n:
            tile = tl.dot(tile, other, input_precision="ieee") % 8.0
            other = tl.dot(tl.trans(other), tile, tile, input_precision="ieee") % 4.0
            none = tl.dot(other, tile, input_precision="ieee") % 16.0
        else:
            none = tl.full((N, N), 3.0, tl.float32)
        tl.store(out + step * N * N + at, none)
    tl.store(out + steps * N * N + at, tile + tl.dot(none, other, input_precision="ieee"))


@pytest.mark.share(2)
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("n", [0, 2, 3])
def test_what_branches_give_and_shared_memory_takes(rng, poisoned, check, n, warps):
    N, steps = 32, 3
    x, y = (rng.integers(0, 4, (N, N)).astype(np.float32) for _ in range(2))
    out, expected = poisoned("float32", (steps + 1, N, N)), []
    solved[(1,)](x, y, out, steps, n, N=N, num_warps=warps)
    for step in range(steps):
        if step < n:
            x = x @ y % 8
            y = (y.T @ x + x) % 4
            none = y @ x % 16
        else:
            none = np.full((N, N), 3, np.float32)
        expected.append(none)
    check(out, np.stack([*expected, x + none @ y]))


@triton.jit
def highest_and_lowest(a, b, c, d):
    return tl.maximum(a, c), tl.minimum(b, d)


@triton.jit
def one_tile_twice(x, y, ends, square, chained, N: tl.constexpr):
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    tile = tl.exp(tl.load(x + places))
    highest, lowest = tl.reduce((tile, tile), 0, highest_and_lowest)
    tl.store(ends + i, highest)
    tl.store(ends + N + i, lowest)
    tl.store(square + places, tl.dot(tile, tile, input_precision="ieee"))
    other = tl.load(y + places)
    tl.store(chained + places, tl.dot(other, other, other, input_precision="ieee"))


@pytest.mark.parametrize("warps", [1, 4])
def test_one_tile_as_several_operands(draw, poisoned, check_norm, warps):
    """As two of a reduction or a dot, or as what a dot adds to."""
    x, y = draw("float32", (32, 32)), draw("float32", (32, 32))
    ends, square, chained = poisoned("float32", (2, 32)), poisoned("float32", (32, 32)), poisoned("float32", (32, 32))
    one_tile_twice[(1,)](x, y, ends, square, chained, N=32, num_warps=warps)
    tile, other = np.exp(x.astype(np.float64)), y.astype(np.float64)
    check_norm(ends, np.stack([tile.max(0), tile.min(0)]), 1e-6)
    check_norm(square, tile @ tile, 1e-5)
    check_norm(chained, other @ other + other, 1e-5)
