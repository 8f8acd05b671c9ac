"""Loops whose rings have no room beside what else the kernel needs have fewer stages, dots operands in registers."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for

import deuteron
import deuteron.language as tl
from deuteron.errors import OutOfResources
from deuteron.passes.gpu import fit_shared


@deuteron.jit
def computed(a, b, out, K, N: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, N)
    acc = tl.zeros((N, N), tl.float32)
    for k in tl.range(0, K, N, num_stages=STAGES):
        x = tl.load(a + i[:, None] * K + k + i[None, :])
        y = tl.load(b + (k + i)[:, None] * N + i[None, :])
        p = tl.exp(tl.dot(x, y)).to(tl.float16)
        q = tl.dot(p, tl.exp(x.to(tl.float32)).to(tl.float16))
        acc += q + tl.trans(tl.cumsum(q, 0))
    tl.store(out + i[:, None] * N + i[None, :], acc)


def compiled(stages, hint=None, size=128):
    operand, out = aligned(np.zeros((size, size), np.float16)), aligned(np.zeros((size, size), np.float32))
    return compile_for(
        "cuda:80", computed, operand, operand, out, size, N=size, STAGES=hint, num_stages=stages, num_warps=8
    )


@pytest.mark.parametrize(("stages", "hint"), [(3, None), (1, 3)])
def test_what_fits_with_one_stage_compiles_with_more(stages, hint):
    kernel = compiled(stages, hint)
    assert kernel.metadata.shared == compiled(1).metadata.shared <= 163 * 1024
    assert "fewer-stages" in kernel.asm["ttgir"] and "has no room for 3 stages" in kernel.asm["ttgir"]
    assert kernel.metadata.options["num_stages"] == stages


def test_what_has_room_keeps_its_stages():
    kernel = compiled(3, size=64)
    assert "fewer-stages" not in kernel.asm["ttgir"] and kernel.metadata.shared > compiled(1, size=64).metadata.shared


def test_what_fits_with_no_number_of_stages_is_an_error(monkeypatch):
    monkeypatch.setattr("deuteron.passes.gpu.fit_shared._fits", lambda module, config: False)
    with pytest.raises(OutOfResources, match="shared memory"):
        compiled(2)


@deuteron.jit
def all_pairs(a, b, c, d, out, N: tl.constexpr, K: tl.constexpr):
    """Four products of four tiles, all of which live at once."""
    i, k = tl.arange(0, N), tl.arange(0, K)
    rows, columns = i[:, None] * K + k[None, :], k[:, None] * N + i[None, :]
    w, x, y, z = tl.load(a + rows), tl.load(b + columns), tl.load(c + rows), tl.load(d + columns)
    total = tl.dot(w, x) + tl.dot(y, z)
    total += tl.dot(w, z) + tl.dot(y, x)
    tl.store(out + i[:, None] * N + i[None, :], total)


@pytest.mark.parametrize(("k", "by_warpgroups"), [(64, True), (256, False)])
def test_dots_whose_operands_have_no_room_together_are_left_to_warps(k, by_warpgroups):
    """Each dot alone has room."""
    operands = [aligned(np.zeros((128, k), np.float16)) for _ in range(4)]
    kernel = compile_for(
        "cuda:90", all_pairs, *operands, aligned(np.zeros((128, 128), np.float32)), N=128, K=k, num_warps=8
    )
    assert ("wgmma" in kernel.asm["ptx"]) == by_warpgroups
    assert ("has no room for its operands" in kernel.asm["ttgir"]) == (not by_warpgroups)


@pytest.mark.parametrize(("stages", "size", "times"), [(3, 64, 1), (3, 128, 3), (6, 128, 3)])
def test_passes_do_not_run_for_stages_that_cannot_have_room(monkeypatch, stages, size, times):
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    monkeypatch.setenv("DEUTERON_EMULATOR_SEED", "1")
    made, fits = [], fit_shared._fits
    monkeypatch.setattr(fit_shared, "_fits", lambda module, config: made.append(module) or fits(module, config))
    compiled(stages, size=size)
    assert len(made) == times
