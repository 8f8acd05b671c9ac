"""Passes that are left out of a compile: what remains is right, and another kernel to the cache."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate_compiled

import deuteron
import deuteron.language as tl
from deuteron.backend.cuda.target import architecture
from deuteron.errors import UsageError
from deuteron.machine.gpu import GPUConfig
from deuteron.machine.tile import TILES_OF_CPU
from deuteron.passes.by_name import known_passes
from deuteron.passes.gpu import gpu_passes
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.tile import tile_passes

OPTIONAL = sorted(name for name, one in known_passes().items() if issubclass(one, Optimisation))
NEEDED = sorted(set(known_passes()) - set(OPTIONAL))


@deuteron.jit
def softmax_of_product(a, b, out, n, flag, N: tl.constexpr):
    """Products, loops to unroll and to unswitch, branches, a reduction, operands that are not 16 bits wide."""
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in range(n):
        x = tl.load(a + step * N * N + square)
        y = tl.load(b + step * N * N + square) if flag else tl.load(b + square)
        acc = tl.dot(x, y, acc)
    total = tl.zeros((N,), tl.float32)
    for step in tl.range(0, 5, loop_unroll_factor=2):
        total += tl.sum(acc, 1) * (step + 0)
    tl.store(out + square, acc + total[:, None])


@pytest.mark.share(2)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("name", OPTIONAL)
def test_a_kernel_computes_the_same_without(rng, monkeypatch, target, name):
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", name)
    n, size = 3, 64
    a, b = (rng.standard_normal((n, size, size)).astype(np.float16) for _ in range(2))
    out = np.full((size, size), np.nan, np.float32)
    kernel = compile_for(target, softmax_of_product, a, b, out, n, 1, N=size, num_stages=3)
    emulate_compiled(kernel, a, b, out, n, 1)
    acc = sum(x.astype(np.float64) @ y for x, y in zip(a, b, strict=True))
    np.testing.assert_allclose(out, acc + 10 * acc.sum(1, keepdims=True), rtol=1e-2, atol=0.5)


@deuteron.jit
def product(a, b, out, N: tl.constexpr, PRECISION: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    tl.store(out + square, tl.dot(tl.load(a + square), tl.load(b + square), input_precision=PRECISION))


@pytest.mark.share(2)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize(
    ("dtype", "precision", "tolerance"),
    [(ml_dtypes.float8_e5m2, "tf32", 1e-2), (np.float32, "tf32x3", 1e-5), (np.float32, "ieee", 1e-5)],
)
@pytest.mark.parametrize("name", [name for name in OPTIONAL if "operands" in known_passes()[name].__module__])
def test_products_of_other_types(rng, monkeypatch, target, dtype, precision, tolerance, name):
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", name)
    a, b = (rng.standard_normal((32, 32)).astype(dtype) for _ in range(2))
    out = np.full((32, 32), np.nan, np.float32)
    kernel = compile_for(target, product, a, b, out, N=32, PRECISION=precision)
    emulate_compiled(kernel, a, b, out)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NEEDED)
def test_a_pass_that_others_build_on_is_not_left_out(monkeypatch, name):
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", f"fold,{name}")
    array = np.zeros(64 * 64, np.float16)
    with pytest.raises(UsageError, match=f"pass '{name}' cannot be disabled"):
        compile_for("cuda:90", softmax_of_product, array, array, array, 1, 1, N=64)


def test_what_is_no_pass(monkeypatch):
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "flod")
    array = np.zeros(64 * 64, np.float16)
    with pytest.raises(UsageError, match="unknown pass 'flod': did you mean 'fold'"):
        compile_for("cuda:90", softmax_of_product, array, array, array, 1, 1, N=64)


def test_it_is_another_kernel_to_the_cache(monkeypatch):
    array = np.zeros(64 * 64, np.float16)
    hashes = set()
    for disabled in ("", "fold", "fold, combine", "combine,fold,"):
        monkeypatch.setenv("DEUTERON_DISABLE_PASSES", disabled)
        hashes.add(compile_for("cuda:80", softmax_of_product, array, array, array, 1, 1, N=64).hash)
    assert len(hashes) == 3


@pytest.mark.parametrize("capability", [80, 90])
def test_every_pass_is_in_a_pipeline(capability):
    """On every machine: one that lacks what a pass makes use of is left as it is."""
    passes = [
        *tile_passes(),
        *tile_passes(replace(TILES_OF_CPU, groups_programs=True, splits_accesses=True), debug=False),
        *gpu_passes(GPUConfig(architecture(capability).machine)),
    ]
    assert {one.name for one in passes} == set(known_passes())
