"""Loads and stores of the same place keep their order, whatever is between them: masks, atomics, branches, loops."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_warps", [1, 8])
def test_a_program_does_one_thing_after_the_other(draw, poisoned, kind, num_warps):
    p, o = draw("int32", 256, -1000, 1000), poisoned("int32", 256)
    expected = p.copy(), o.copy()
    expect_program_order(*expected, kind)
    in_program_order[(1,)](p, o, KIND=kind, num_warps=num_warps)
    np.testing.assert_array_equal(p, expected[0])
    np.testing.assert_array_equal(o, expected[1])
