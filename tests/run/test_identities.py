"""Reductions begin with what changes nothing: of tiles of that alone the result is that."""

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def both(a, b):
    return a & b


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def differ(a, b):
    return a ^ b


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def total(a, b):
    return a + b


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def smaller(a, b):
    return tl.minimum(a, b)


COMBINED = {"&": both, "|": either, "^": differ, "*": product, "+": total, "max": larger, "min": smaller}


@triton.jit
def along_each_axis(x, out, COMBINE: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(out + m, tl.reduce(tile, 1, COMBINE))
    tl.store(out + M + n, tl.reduce(tile, 0, COMBINE))
    tl.store(out + M + N, tl.reduce(tile, None, COMBINE))


def identity_of(name: str, dtype: np.dtype) -> int | float:
    if name in ("max", "min") and dtype.kind == "f":
        return -np.inf if name == "max" else np.inf
    if name in ("max", "min"):
        return np.iinfo(dtype).min if name == "max" else np.iinfo(dtype).max
    return {"&": np.array(-1).astype(dtype), "*": 1}.get(name, 0)


INTEGERS = ["int8", "uint8", "int32", "uint32", "int64"]
CASES = [(name, dtype) for name in COMBINED for dtype in (*INTEGERS, *(["float32"] if name not in "&|^" else []))]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_tiles_of_what_changes_nothing(poisoned, check, name, dtype):
    m, n = 8, 64
    x = np.full((m, n), identity_of(name, np.dtype(dtype)), dtype)
    out = poisoned(dtype, m + n + 1)
    along_each_axis[(1,)](x, out, COMBINED[name], m, n)
    check(out, np.full(m + n + 1, x[0, 0]))
