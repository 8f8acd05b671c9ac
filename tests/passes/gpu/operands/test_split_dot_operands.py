"""Products of f32 by parts: which there are, and how exact, on mma.sync and wgmma, also of infinities and NaN."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

# products, the instruction's type, the error of a product of f32 in relation to its norm
PRECISIONS = {"tf32x3": (3, "tf32", 2e-7), "bf16x3": (3, "bf16", 8e-6), "bf16x6": (6, "bf16", 2e-7)}


@deuteron.jit
def product(a, b, c, out, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    acc = tl.load(c + i[:, None] * N + j[None, :])
    for start in range(0, K, BLOCK_K):
        x = tl.load(a + i[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + j[None, :])
        acc = tl.dot(x, y, acc, input_precision=PRECISION)
    tl.store(out + i[:, None] * N + j[None, :], acc)


def run(a, b, c, target, precision, block_k=32, **options):
    (m, k), n = a.shape, b.shape[1]
    out = aligned(np.full((m, n), 7, np.float32))
    sizes = {"M": m, "N": n, "BLOCK_K": block_k, "PRECISION": precision}
    kernel = emulate(product, aligned(a), aligned(b), aligned(c), out, k, **sizes, target=target, **options)
    return kernel, out


def draw(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.share(3)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("precision", list(PRECISIONS))
@pytest.mark.parametrize("stages", [1, 3])
def test_as_exact_as_its_parts(rng, target, precision, stages):
    count, type, tolerance = PRECISIONS[precision]
    a, b, c = draw(rng, 64, 96), draw(rng, 96, 32), draw(rng, 64, 32)
    kernel, out = run(a, b, c, target, precision, num_stages=stages)
    expected = c.astype(np.float64) + a.astype(np.float64) @ b
    assert np.linalg.norm(out - expected) < tolerance * np.linalg.norm(expected)
    assert instructions_with(kernel, type) and (
        instructions_with(kernel, "wgmma.mma_async") if target == "cuda:90" else instructions_with(kernel, "mma.sync")
    )
    assert generic_asm(kernel, "ttgir").count('dot"(') == count


def test_one_part_is_less_exact(rng):
    a, b, c = draw(rng, 64, 96), draw(rng, 96, 32), draw(rng, 64, 32)
    expected = c.astype(np.float64) + a.astype(np.float64) @ b
    errors = {name: np.linalg.norm(run(a, b, c, "cuda:90", name)[1] - expected) for name in ("tf32", "tf32x3")}
    assert errors["tf32"] > 100 * errors["tf32x3"]


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("precision", list(PRECISIONS))
def test_what_is_not_finite(rng, target, precision):
    """And what rounding would make infinite."""
    a, b, c = draw(rng, 64, 32), np.abs(draw(rng, 32, 32)) / 64, draw(rng, 64, 32)
    a[3, 5], a[7, 1], a[9, 2] = np.inf, np.nan, -np.inf
    a[11] = 0
    a[11, 4] = np.finfo(np.float32).max
    _, out = run(a, b, c, target, precision)
    assert (out[3] == np.inf).all() and np.isnan(out[7]).all() and (out[9] == -np.inf).all()
    expected = c[11].astype(np.float64) + a[11].astype(np.float64) @ b
    np.testing.assert_allclose(out[11], expected, rtol=1e-4)
    assert np.isfinite(np.delete(out, [3, 7, 9], 0)).all()


@pytest.mark.parametrize(("precision", "rounds"), [("tf32", True), ("tf32x3", False)])
def test_parts_are_not_rounded_again(precision, rounds):
    x = np.zeros(4096, np.float32)
    kernel = compile_for("cuda:80", product, x, x, x, x, 32, M=16, N=16, BLOCK_K=32, PRECISION=precision)
    assert bool(instructions_with(kernel, "cvt.rna.tf32")) == rounds
    assert ("tf32_rtz" in kernel.asm["ttgir"]) != rounds


def test_small_products_stay(rng):
    x = np.zeros(4096, np.float32)
    sizes = {"M": 16, "N": 16, "BLOCK_K": 8}
    for precision, is_split in (("bf16x3", False), ("tf32x3", True), ("ieee", False)):
        kernel = compile_for("cuda:80", product, x, x, x, x, 8, **sizes, PRECISION=precision)
        assert bool(instructions_with(kernel, "mma.sync")) == is_split
