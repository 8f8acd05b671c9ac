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
