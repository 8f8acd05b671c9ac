"""The largest of what is scaled: the largest that is scaled, where the number keeps the order, and nothing else."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate

import deuteron
import deuteron.language as tl

ROWS, COLUMNS, K = 16, 64, 16


@deuteron.jit
def first_of(a, b):
    return a


@deuteron.jit
def lower_of(a, b):
    return tl.minimum(a, b)


@deuteron.jit
def higher_or_nan(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@deuteron.jit
def scores(a, b, extremes, distances, scale, n, KIND: tl.constexpr, N: tl.constexpr, C: tl.constexpr = None):
    """Of each of n products the extremes of the rows, times a number, and how far everything is from them."""
    rows, columns, k = tl.arange(0, 16), tl.arange(0, N), tl.arange(0, 16)
    places = rows[:, None] * N + columns[None, :]
    x = tl.load(a + rows[:, None] * 16 + k[None, :])
    for i in range(n):
        product = tl.dot(x, tl.load(b + i * 16 * N + k[:, None] * N + columns[None, :]))
        scaled = product * (scale if C is None else C)
        if KIND == "printed before":
            tl.store(distances + i * 16 * N + places, scaled)
        if KIND == "min":
            extreme = tl.reduce(scaled, 1, lower_of)
        elif KIND == "nan":
            extreme = tl.reduce(scaled, 1, higher_or_nan)
        elif KIND == "first":
            extreme = tl.reduce(scaled, 1, first_of)
        else:
            extreme = tl.max(scaled, 1)
        tl.store(extremes + i * 16 + rows, extreme)
        if KIND == "stored":
            tl.store(distances + i * 16 * N + places, scaled)
        elif KIND != "printed before":
            tl.store(distances + i * 16 * N + places, scaled - extreme[:, None])


@deuteron.jit
def of_rows(x, out, scale, C: tl.constexpr, N: tl.constexpr):
    row = tl.load(x + tl.arange(0, N)) * (scale if C is None else C)
    top = tl.max(row, 0)
    tl.store(out + tl.arange(0, N), row - top)


def ttgir(kind, columns=COLUMNS):
    a, out = np.zeros((ROWS, K), np.float16), np.zeros(ROWS * columns, np.float32)
    return compile_for("cuda:90", scores, a, a, out, out, 1.5, 3, KIND=kind, N=columns, num_warps=1).asm["ttgir"]


def operand_of_reduction(text):
    name = re.search(r'"tt\.reduce"\((%\w+)\)', text)[1]
    return re.search(rf"{name} = (\S+)", text)[1]


@pytest.mark.parametrize(
    ("kind", "columns", "branches"),
    [
        ("max", 64, 1),
        ("min", 64, 1),
        ("nan", 64, 1),
        ("max", 16, 0),  # eight elements of a thread
        ("first", 64, 0),
        ("stored", 64, 0),
        ("printed before", 64, 0),
    ],
)
def test_a_factor_that_only_a_launch_knows_takes_a_branch(kind, columns, branches):
    assert ttgir(kind, columns).count("scf.if") == branches


FACTORS = [0.7, 3e38, 1e-45, 0.0, -0.0, -0.7, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("kind", ["max", "min", "nan"])
@pytest.mark.parametrize("factor", FACTORS)
def test_the_same_with_every_factor(rng, monkeypatch, kind, factor):
    """Rows of small and large numbers, of zeros of both signs, with infinities and NaN; and of nothing else."""
    a = np.zeros((ROWS, K), np.float16)
    a[:8, 0] = [1, -1, 1e-7, 0, 0, 6e4, np.inf, np.nan]
    a[8:] = rng.standard_normal((8, K))
    b = rng.standard_normal((3, K, COLUMNS)).astype(np.float16)
    b[1, 0] = -abs(b[1, 0])
    b[1, :, ::3] *= 0
    b[2, 0, rng.random(COLUMNS) < 0.3] = np.inf

    def launched():
        extremes = aligned(np.full((3, ROWS), 77, np.float32))
        distances = aligned(np.full((3, ROWS, COLUMNS), 77, np.float32))
        emulate(scores, aligned(a), aligned(b), extremes, distances, factor, 3, KIND=kind, N=COLUMNS, num_warps=1)
        return extremes, distances

    extremes, distances = launched()
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "scale-extrema")
    expected_extremes, expected_distances = launched()
    np.testing.assert_array_equal(extremes, expected_extremes)
    np.testing.assert_array_equal(np.signbit(extremes), np.signbit(expected_extremes))
    # x * factor is infinite where x * factor - extreme, rounded once, may not be
    is_finite = np.isfinite(expected_distances)
    np.testing.assert_allclose(distances[is_finite], expected_distances[is_finite], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("constant", "reduced"), [(0.125, "tt.dot"), (-0.125, "arith.mulf")])
def test_constants_take_no_branch(rng, constant, reduced):
    a, b = (aligned(rng.standard_normal(shape).astype(np.float16)) for shape in ((ROWS, K), (3, K, COLUMNS)))
    extremes, distances = (aligned(np.full(shape, 77, np.float32)) for shape in ((3, ROWS), (3, ROWS, COLUMNS)))
    kernel = emulate(scores, a, b, extremes, distances, 7.0, 3, KIND="max", N=COLUMNS, C=constant, num_warps=1)
    scaled = a.astype(np.float64) @ b.astype(np.float64) * constant
    np.testing.assert_allclose(extremes, scaled.max(2), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(distances, scaled - scaled.max(2, keepdims=True), rtol=1e-5, atol=1e-5)
    assert "scf.if" not in kernel.asm["ttgir"] and operand_of_reduction(kernel.asm["ttgir"]) == reduced


@pytest.mark.parametrize("constant", [0.125, None])
def test_kernels_without_dots_stay(rng, constant):
    x, out = aligned(rng.standard_normal(1024).astype(np.float32)), aligned(np.full(1024, 77, np.float32))
    kernel = emulate(of_rows, x, out, 0.125, C=constant, N=1024, num_warps=1)
    scaled = x * np.float32(0.125)
    np.testing.assert_allclose(out, scaled - scaled.max(), rtol=1e-6, atol=1e-6)
    assert "scf.if" not in kernel.asm["ttgir"] and operand_of_reduction(kernel.asm["ttgir"]) == "arith.mulf"
