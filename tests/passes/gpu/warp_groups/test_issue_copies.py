"""Copies ahead that are issued while a dot by wgmma runs whose sums threads use in the iteration."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl


@deuteron.jit
def scaled(a, b, rows, scales, out, k, IS_SCALED: tl.constexpr, STEP: tl.constexpr):
    """Gathered rows; each step of K has a scale for each of them."""
    m, s = tl.arange(0, 64), tl.arange(0, STEP)
    row = tl.load(rows + m)
    sums = tl.zeros((64, 64), tl.float32)
    for start in range(0, k, STEP):
        x = tl.load(a + row[:, None] * k + (start + s)[None, :])
        y = tl.load(b + row[None, :] * k + (start + s)[:, None])
        if IS_SCALED:
            sums += tl.dot(x, y) * tl.load(scales + start // STEP * 64 + m)[:, None]
        else:
            sums = tl.dot(x, y, sums)
    tl.store(out + m[:, None] * 64 + m[None, :], sums)


@pytest.mark.parametrize(("is_scaled", "order"), [(True, ["dot", "copy", "copy", "wait"]), (False, None)])
@pytest.mark.parametrize("steps", [1, 4, 5])
def test_what_is_issued_behind_a_dot(is_scaled, order, steps):
    rng, k = np.random.default_rng(0), 64 * steps
    a, b = (aligned((rng.standard_normal((64, k)) / 4).astype(np.float16)) for _ in range(2))
    rows, scales = aligned(rng.permutation(64).astype(np.int32)), aligned(rng.random((steps, 64)).astype(np.float32))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    arguments = (a, b, rows, scales, out, k)
    kernel = compile_for("cuda:90", scaled, *arguments, IS_SCALED=is_scaled, STEP=64)
    emulate_compiled(kernel, *arguments, asynchronous="random")
    x, y = (one[rows].astype(np.float64).reshape(64, steps, 64) for one in (a, b))
    factors = scales.T if is_scaled else np.ones((64, steps))
    np.testing.assert_allclose(out, np.einsum("isk,jsk,is->ij", x, y, factors), rtol=1e-3, atol=1e-3)
    assert order is None or sequence(kernel) == order


def sequence(kernel) -> list[str]:
    """Of the loop: the dot, copies, the wait."""
    text = generic_asm(kernel, "ttgir").split('"scf.for"')[1]
    names = {"warp_group_dot": "dot", "async_copy_global_to_local": "copy", "warp_group_dot_wait": "wait"}
    return [names[name] for name in re.findall(rf'"(?:ttng|ttg)\.({"|".join(names)})"', text)]
