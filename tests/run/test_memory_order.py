"""Loads and stores of the same place keep their order, whatever is between them: masks, atomics, branches, loops."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl

pytestmark = pytest.mark.each_gpu


@triton.jit
def before_masked_store(p, o, n, KIND: tl.constexpr):
    """What is loaded is stored after a masked store, or an atomic, to the same place."""
    i = tl.arange(0, 32)
    v = tl.load(p + i)
    if KIND == "atomic":
        tl.atomic_add(p + i, 7, mask=i < n, sem="relaxed")
    elif KIND == "exchange":
        tl.atomic_xchg(p + i, 7, mask=i < n)
    else:
        tl.store(p + i, 7, mask=i < n)
    if KIND == "loop":
        for k in range(n):
            tl.store(o + 32 + k, 7)
        tl.store(o + i, v)
    elif n > 3:
        tl.store(o + i, v)


@pytest.mark.parametrize("kind", ["store", "loop", "atomic", "exchange"])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_what_was_loaded_before_it_is_overwritten(draw, poisoned, kind, num_warps):
    p, o = draw("int32", 32, 0, 1000), poisoned("int32", 64)
    expected, inside = p.copy(), np.arange(32) < 20
    before_masked_store[(1,)](p, o, 20, KIND=kind, num_warps=num_warps)
    np.testing.assert_array_equal(o[:32], expected)
    np.testing.assert_array_equal(p, np.where(inside, 7 + (expected if kind == "atomic" else 0), expected))


@triton.jit
def in_program_order(p, o, KIND: tl.constexpr):
    """One program writes what others of its threads have read, or read then."""
    i, j = tl.arange(0, 256), tl.arange(0, 32)
    if KIND == "scalar":
        v = tl.load(p)
        tl.store(p, v + 1)
        tl.store(o + i, i + v)
    elif KIND == "small tile":
        x = tl.load(p + j)
        tl.store(p + j, x + 1)
        tl.store(o + i, i + tl.sum(x))
    elif KIND == "turned":
        tl.store(p + 255 - i, tl.load(p + i))
    elif KIND == "stored, then loaded":
        tl.store(p + i, i)
        tl.store(o + i, tl.load(p + 255 - i))
    elif KIND == "stored twice":
        tl.store(p + i, i)
        tl.store(p + 255 - i, i * 2, mask=i < 100)
    elif KIND == "loop":
        for k in range(1, 5):
            v = tl.load(p + k - 1 + i, mask=i < 200)
            tl.store(p + k + i, v + k, mask=i < 200)
    elif KIND == "stored over":
        for k in range(1, 5):
            tl.store(p + k + i, i * k, mask=i < 200)
    elif KIND == "halves":
        x, y = tl.load(p + j), tl.load(p + 32 + j)
        tl.store(p + j, x + y)
        tl.store(p + 32 + j, x - y)
        tl.store(o + j, x * y)


def expect_program_order(p, o, kind):
    i, j = np.arange(256, dtype=np.int32), np.arange(32)
    before = p.copy()
    if kind == "scalar":
        p[0] += 1
        o[:] = i + before[0]
    elif kind == "small tile":
        p[j] += 1
        o[:] = i + before[j].sum()
    elif kind == "turned":
        p[:] = before[::-1]
    elif kind == "stored, then loaded":
        p[:], o[:] = i, i[::-1]
    elif kind == "stored twice":
        p[:] = i
        p[255 - i[:100]] = 2 * i[:100]
    elif kind == "loop":
        for k in range(1, 5):
            p[k : k + 200] = p[k - 1 : k + 199] + k
    elif kind == "stored over":
        for k in range(1, 5):
            p[k : k + 200] = i[:200] * k
    elif kind == "halves":
        p[j], p[32 + j], o[j] = before[j] + before[32 + j], before[j] - before[32 + j], before[j] * before[32 + j]


KINDS = ["scalar", "small tile", "turned", "stored, then loaded", "stored twice", "loop", "stored over", "halves"]


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_warps", [1, 8])
def test_a_program_does_one_thing_after_the_other(draw, poisoned, kind, num_warps):
    p, o = draw("int32", 256, -1000, 1000), poisoned("int32", 256)
    expected = p.copy(), o.copy()
    expect_program_order(*expected, kind)
    in_program_order[(1,)](p, o, KIND=kind, num_warps=num_warps)
    np.testing.assert_array_equal(p, expected[0])
    np.testing.assert_array_equal(o, expected[1])


@triton.jit
def over_what_was_loaded(p, q, indices, stride, o, N: tl.constexpr, KIND: tl.constexpr):
    """Elements are loaded before any of them is stored, whichever index they are used at, and however often."""
    i = tl.arange(0, N)
    square, line = i[:, None] * N + i[None, :], tl.arange(0, N * N)
    if KIND == "transposed":
        tl.store(q + square, tl.trans(tl.load(p + square)))
    elif KIND == "reduced, then stored":
        sums = tl.sum(tl.trans(tl.load(p + square)), 0)
        tl.store(q + square, square)
        tl.store(o + i, sums)
    elif KIND == "transposed, then stored":
        x = tl.load(p + square)
        tl.store(o + square, tl.trans(x))
        tl.store(q + square, square)
    else:
        places = line % stride
        if KIND == "constant remainders":
            places = line % N
        elif KIND == "numbers":
            places = tl.load(indices + line)
        elif KIND == "rows":
            places = tl.reshape(i[:, None] * stride + i[None, :], (N * N,))
        tl.store(q + places, tl.load(p + places) + 1)


def expect_over_what_was_loaded(p, indices, stride, o, n, kind):
    before, i = p.copy(), np.arange(n * n)
    if kind == "transposed":
        p[:] = before.reshape(n, n).T.ravel()
    elif kind == "reduced, then stored":
        p[:], o[:n] = i, before.reshape(n, n).sum(1)
    elif kind == "transposed, then stored":
        p[:], o[:] = i, before.reshape(n, n).T.ravel()
    else:
        rows = i // n * stride + i % n
        places = {"constant remainders": i % n, "numbers": indices, "rows": rows}.get(kind, i % stride)
        p[places] = before[places] + 1


MOVED = ["transposed", "reduced, then stored", "transposed, then stored"]
REPEATED = ["remainders", "constant remainders", "numbers", "rows"]


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", [*MOVED, *REPEATED])
@pytest.mark.parametrize("n", [4, 32])
def test_a_tile_is_loaded_before_it_is_stored_over(draw, poisoned, executor, kind, n):
    """By two names of one array."""
    if kind in REPEATED and executor.startswith("cuda"):
        pytest.skip("several threads store one element: a race")
    p, o, indices = draw("int32", n * n, -1000, 1000), poisoned("int32", n * n), draw("int32", n * n, 0, n - 1)
    expected = p.copy(), o.copy()
    expect_over_what_was_loaded(expected[0], indices, 3, expected[1], n, kind)
    over_what_was_loaded[(1,)](p, p, indices, 3, o, N=n, KIND=kind)
    np.testing.assert_array_equal(p, expected[0])
    np.testing.assert_array_equal(o, expected[1])


@triton.jit
def over_its_own(p, stride, o, N: tl.constexpr, KIND: tl.constexpr):
    over_what_was_loaded(p, p, p, stride, o, N, KIND)


@pytest.mark.parametrize("kind", [*MOVED, *REPEATED])
def test_a_tile_is_loaded_before_it_is_stored_over_by_one_name(draw, poisoned, executor, kind):
    if kind in REPEATED and executor.startswith("cuda"):
        pytest.skip("several threads store one element: a race")
    p, o, n = draw("int32", 1024, 0, 1000), poisoned("int32", 1024), 32
    expected = p.copy(), o.copy()
    expect_over_what_was_loaded(expected[0], expected[0].copy(), 3, expected[1], n, kind)
    over_its_own[(1,)](p, 3, o, N=n, KIND=kind)
    np.testing.assert_array_equal(p, expected[0])
    np.testing.assert_array_equal(o, expected[1])
