"""`%` on floats is exact, whatever the exponents."""

import numpy as np
import pytest

import deuteron.language as tl


def remainder(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) % tl.load(y + i))


def edges(dtype):
    info = np.finfo(dtype)
    numbers = [0.0, 1.0, 2.5, info.max, info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal, np.inf, np.nan]
    numbers = np.array([*numbers, 0.1, 1e30, 7.0], dtype)
    x, y = np.meshgrid(np.concatenate([numbers, -numbers]), numbers)
    return x.ravel().copy(), y.ravel().copy()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainder(compare, rng, dtype):
    x, y = edges(dtype)
    bits = f"int{8 * np.dtype(dtype).itemsize}"
    count = 1024 - x.size
    limits = np.iinfo(bits)
    random = [rng.integers(limits.min, limits.max, count, bits).view(dtype) for _ in range(2)]
    x, y = np.concatenate([x, random[0]]), np.concatenate([y, random[1]])
    out = np.zeros(1024, dtype)
    compare(remainder, [x, y, out], {"BLOCK": 1024}, tolerance=0)


@pytest.mark.parametrize("exponent", [0, 1, 23, 30, 51, 53])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainder_near_whole_quotients(compare, rng, dtype, exponent):
    """A quotient that rounds up to a whole number is one too many."""
    y = (rng.random(1024) + 0.5).astype(dtype)
    x = (y.astype(np.float64) * np.floor(rng.random(1024) * 2.0**exponent)).astype(dtype)
    x = np.nextafter(x, rng.choice([0, np.inf], 1024).astype(dtype)) * rng.choice([-1, 1], 1024).astype(dtype)
    x[1000:], y[1000:] = np.inf, rng.choice([0.0, np.inf, np.nan, 1.0], 24)
    y[980:1000] = np.inf
    compare(remainder, [x, y, np.zeros(1024, dtype)], {"BLOCK": 1024}, tolerance=0)
