"""Results of reductions that lanes share out: the same to the bit, in fewer shuffles, computed with where they are."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def larger(a, i, b, j):
    takes = (a > b) | ((a == b) & (i > j))
    return tl.where(takes, a, b), tl.where(takes, i, j)


@deuteron.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@deuteron.jit
def rows(x, out, more, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, FN: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x + i * N + j)
    k = tl.arange(0, M if AXIS == 1 else N)
    if FN == "sum":
        tl.store(out + k, tl.sum(tile, AXIS))
    elif FN == "mean and norm":
        total = tl.sum(tile, AXIS)
        tl.store(out + k, total / (M if AXIS == 0 else N) + tl.max(tile, AXIS) * 2)
        tl.store(more + i * N + j, tile - tl.expand_dims(total, AXIS))
    elif FN == "softmax":
        e = tl.exp(tile - tl.max(tile, AXIS, keep_dims=True))
        tl.store(more + i * N + j, e / tl.sum(e, AXIS, keep_dims=True))
    elif FN == "argmax":
        tl.store(out + k, tl.argmax(tile, AXIS))
    elif FN == "largest of two":
        value, place = tl.reduce((tile, (i + j).to(tl.int32)), AXIS, larger)
        tl.store(out + k, value)
        tl.store(more + k, place)
    else:
        scale, offset = tl.reduce((tile, tile + 1), AXIS, affine)
        tl.store(out + k, scale)
        tl.store(more + k, offset)


FUNCTIONS = ("sum", "mean and norm", "softmax", "argmax", "largest of two", "affine")
SHAPES = [
    (16, 32, 1, 1),
    (128, 32, 1, 8),
    (4, 64, 1, 1),
    (64, 8, 1, 2),
    (32, 128, 0, 2),
    (8, 512, 1, 1),
    (64, 64, 1, 4),
]


def launched(x, function, shape, dtype, **options):
    rows_, columns, axis, warps = shape
    out = aligned(np.full(columns if axis == 0 else rows_, 77, dtype))
    more = aligned(np.full(rows_ * columns, 77, dtype))
    kernel = emulate(rows, x, out, more, M=rows_, N=columns, AXIS=axis, FN=function, num_warps=warps, **options)
    return kernel, out, more


@pytest.mark.share(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_bits_as_where_all_lanes_have_all(rng, monkeypatch, function, shape, dtype):
    x = aligned((rng.standard_normal(shape[:2]) * 0.9).astype(dtype))
    x[rng.random(shape[:2]) < 0.2] = 0.5
    _, *got = launched(x, function, shape, dtype)
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "scatter-reductions")
    _, *expected = launched(x, function, shape, dtype)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(one.view(np.uint8), other.view(np.uint8))


def test_against_numpy(rng):
    x = aligned(rng.standard_normal((128, 32)).astype(np.float32))
    _, out, more = launched(x, "mean and norm", (128, 32, 1, 8), np.float32)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(out, wide.mean(1) + 2 * wide.max(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(more.reshape(x.shape), wide - wide.sum(1, keepdims=True), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("function", "butterfly", "fetched"), [("sum", 9, 0), ("softmax", 18, 16)])
def test_shuffles(rng, function, butterfly, fetched):
    """Of 8 rows 4, 2, 1, 1 and 1; 40 where all lanes have all. Where they need all, each row is fetched."""
    x = aligned(rng.standard_normal((8, 512)).astype(np.float32))
    kernel, *_ = launched(x, function, (8, 512, 1, 1), np.float32)
    assert len(instructions_with(kernel, "shfl.sync.bfly")) == butterfly
    assert len(instructions_with(kernel, "shfl.sync.idx")) == fetched


def test_what_is_computed_of_results_is_converted_once(rng):
    x = aligned(rng.standard_normal((128, 32)).astype(np.float32))
    kernel, *_ = launched(x, "sum", (128, 32, 1, 8), np.float32)
    assert len(instructions_with(kernel, "bar.sync")) == 1
    assert len(instructions_with(kernel, "st.shared")) == 1
