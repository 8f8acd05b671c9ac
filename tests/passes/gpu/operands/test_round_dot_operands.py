"""Computed operands of tf32 are rounded once, where they are stored; what others need stays exact, as do parts."""

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate_compiled

import deuteron
import deuteron.language as tl
from deuteron.passes.gpu.operands.round_dot_operands import RoundDotOperands

N = 32
CASES = {"tf32": True, "of one": False, "needed exact": False, "tf32x3": False}


@deuteron.jit
def multiplied(x, y, out, N: tl.constexpr, CASE: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(x + at), tl.load(y + at)
    a = tl.exp(a)
    if CASE != "of one":
        b = tl.exp(b)
    if CASE == "tf32x3":
        d = tl.dot(a, b, input_precision="tf32x3")
    else:
        d = tl.dot(a, b, input_precision="tf32")
        d = tl.dot(b, a, d, input_precision="tf32")
    if CASE == "needed exact":
        d += a + b
    tl.store(out + at, d)


def with_and_without(monkeypatch, *args, **given):
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    kernels = [compile_for("cuda:80", multiplied, *args, **given)]
    monkeypatch.setattr(RoundDotOperands, "apply", lambda self, ctx, op: None)
    return [*kernels, compile_for("cuda:80", multiplied, *args, **given)]


@pytest.mark.parametrize("case", CASES)
def test_results_are_the_same(rng, monkeypatch, case):
    x, y = (rng.standard_normal((N, N)).astype(np.float32) for _ in range(2))
    x[0, :2], y[3, 3] = (89, -np.nan), 88.5
    kernels = with_and_without(monkeypatch, x, y, x, N=N, CASE=case, num_warps=4)
    outs = [np.zeros((N, N), np.float32) for _ in kernels]
    for kernel, out in zip(kernels, outs, strict=True):
        emulate_compiled(kernel, x, y, out)
    np.testing.assert_array_equal(*outs)
    rounded, exact = (kernel.asm["ptx"].count("cvt.rna.tf32") for kernel in kernels)
    assert ("cvt.rna.tf32" in kernels[0].asm["ttgir"]) == CASES[case]
    assert rounded < exact if CASES[case] else rounded == exact
