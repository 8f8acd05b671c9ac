"""Kernels for launchers of any kind: the signature's arguments and 32 * num_warps threads are all that they need."""

from __future__ import annotations

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.compat.old_spellings import compile as triton_compile
from deuteron.compiler import ASTSource, IRSource
from deuteron.compiler import compile as deuteron_compile
from deuteron.emulator import launch

M, N, K = 128, 64, 64
SIZES = {"BM": 64, "BN": 64, "BK": 32}
ALIGNED = [["tt.divisibility", 16]]


@triton.jit
def multiply(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPECIALISED: tl.constexpr):
    """Loads that would be copied by TMA, which takes tensor maps, and by warps of their own."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns, depth = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for at in tl.range(0, k, BK, warp_specialize=SPECIALISED):
        x = tl.load(a + rows[:, None] * k + (at + depth)[None, :])
        y = tl.load(b + (at + depth)[:, None] * n + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * n + columns[None, :], acc)


@triton.jit
def multiply_described(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    A = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    B = tl.make_tensor_descriptor(b, [k, n], [n, 1], [BK, BN])
    C = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BM, BN])
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(0, k, BK):
        acc = tl.dot(A.load([tl.program_id(0) * BM, at]), B.load([at, tl.program_id(1) * BN]), acc)
    C.store([tl.program_id(0) * BM, tl.program_id(1) * BN], acc)


def compiled(fn, constexprs, target, **options):
    types = {**dict.fromkeys("ab", "*fp16"), "c": "*fp32", **dict.fromkeys("mnk", "i32")}
    source = ASTSource(fn, types, {**SIZES, **constexprs}, {(index,): ALIGNED for index in range(6)})
    return triton_compile(source, target=target, options=options)


def launch_as_any_launcher(kernel, rng):
    """As torch's static launcher does: what it reads of a kernel is `metadata.num_warps`, `.shared` and `.name`."""
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    c = np.full((M, N), np.nan, np.float32)
    metadata = kernel.metadata
    grid = (M // SIZES["BM"], N // SIZES["BN"])
    launch(kernel.asm["ptx"], metadata.name, grid, 32 * metadata.num_warps, metadata.shared, (a, b, c, M, N, K))
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("target", ["cuda:90", "cuda:80"])
@pytest.mark.parametrize(
    "fn, constexprs", [(multiply, {"SPECIALISED": False}), (multiply, {"SPECIALISED": True}), (multiply_described, {})]
)
def test_the_arguments_are_all(rng, fn, constexprs, target):
    kernel = compiled(fn, constexprs, target, num_warps=4)
    assert kernel.metadata.plain_arguments
    assert not kernel.metadata.tensor_maps
    assert not hasattr(kernel.metadata, "global_scratch_size")  # nor the pointers that Triton passes after them
    launch_as_any_launcher(kernel, rng)


def test_without_the_option_there_are_tensor_maps():
    for fn, constexprs in ((multiply, {"SPECIALISED": False}), (multiply_described, {})):
        assert compiled(fn, constexprs, "cuda:90", plain_arguments=False).metadata.tensor_maps


def test_a_ttgir_with_tensor_maps_is_for_other_launches():
    text = compiled(multiply_described, {}, "cuda:90", plain_arguments=False).asm["ttgir"]
    source = IRSource.from_text(text, "ttgir")
    with pytest.raises(triton.CompilationError, match="tensor maps a launch with plain_arguments=True does not pass"):
        deuteron_compile(source, "cuda:90", {"num_warps": 4, "plain_arguments": True})


def test_warps_that_copy_are_among_those_of_the_metadata():
    kernel = compiled(multiply, {"SPECIALISED": True}, "cuda:90", num_warps=4)
    assert kernel.metadata.extra_warps
    assert kernel.metadata.num_warps == 4 + kernel.metadata.extra_warps


def test_other_targets_have_no_such_option():
    types = {**dict.fromkeys("ab", "*fp16"), "c": "*fp32", **dict.fromkeys("mnk", "i32")}
    source = ASTSource(multiply, types, {**SIZES, "SPECIALISED": False})
    assert "plain_arguments" not in triton_compile(source, target="cpu").metadata.options
