"""Tiles that loops carry in memory of each thread, exchanged, kept and used before and after: with right results."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.passes.gpu.slices.slice_tiles import SliceTiles

N = 128
CASES = [
    "exchanged",
    "twice",
    "kept",
    "in a branch",
    "in branches of a branch",
    "before it is computed",
    "summed up",
]


@deuteron.jit
def carried(a, out, n, N: tl.constexpr, CASE: tl.constexpr):
    """Two tiles, each of which would fill the registers of a warp."""
    i, j = tl.arange(0, N), tl.arange(0, N)
    square = i[:, None] * N + j[None, :]
    x, y = tl.load(a + square), tl.load(a + N * N + square)
    begun, last = x, y
    for k in range(n):
        z = tl.load(a + (k + 2) * N * N + square)
        if CASE == "exchanged":
            x, y = y, x * 2 + z
        elif CASE == "twice":
            x = x * 2 + z
            y = x
        elif CASE == "kept":
            last = x
            x = x * 2 + z
        elif CASE == "in a branch":
            if k % 2 == 1:
                x = x * 2 + z
        elif CASE == "in branches of a branch":
            last = x
            if k % 4 != 0:
                if k % 2 == 1:
                    x = (x ^ z) * 2 + z
                    y = (y ^ x) * 2 + z
                else:
                    y = (y ^ x) * 2 + z
                    for j in range(k):
                        x = (x ^ j) * 2 + z
        elif CASE == "before it is computed":
            y += x
            x = x * 2 + z
            y += x
        elif CASE == "summed up":
            x = x * 2 + z + tl.sum(x, 1)[:, None]
    tl.store(out + square, x)
    tl.store(out + N * N + square, y)
    tl.store(out + 2 * N * N + square, last)
    tl.store(out + 3 * N * N + square, begun)


def in_branches(x, y, z, k):
    if k % 2 == 1:
        x = (x ^ z) * 2 + z
        y = (y ^ x) * 2 + z
    elif k % 4 == 2:
        y = (y ^ x) * 2 + z
        for j in range(k):
            x = (x ^ j) * 2 + z
    return x, y


def expected(case, a, n):
    x, y = a[:2].astype(np.int64)
    begun, last = x, y
    for k in range(n):
        z = a[k + 2]
        match case:
            case "exchanged":
                x, y = y, x * 2 + z
            case "twice":
                x = y = x * 2 + z
            case "kept":
                x, last = x * 2 + z, x
            case "in a branch":
                x = x * 2 + z if k % 2 else x
            case "in branches of a branch":
                last = x
                x, y = in_branches(x, y, z, k)
            case "before it is computed":
                x, y = x * 2 + z, y + x + x * 2 + z
            case "summed up":
                x = x * 2 + z + x.sum(1)[:, None]
    return np.stack([x, y, last, begun]).astype(np.int32)


@pytest.mark.share(2)
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_left(rng, case, target):
    a = aligned(rng.integers(-3, 4, (6, N, N)).astype(np.int32))
    out = aligned(np.full((4, N, N), 77, np.int32))
    kernel = compile_for(target, carried, a, out, 3, N=N, CASE=case, num_warps=1)
    ttgir = generic_asm(kernel, "ttgir")
    assert '"ttg.private_alloc"' in ttgir
    if case == "in branches of a branch":  # both stay, whatever side is taken
        inside = kernel.asm["ttgir"].split("scf.for %k = ")[1].split('"scf.yield"(%x')[0]
        assert not re.search(r'"ttg.private_store"\(%\w+, %\w+\)', inside)
    for n in (0, 1, 2, 4):
        out.fill(77)
        emulate_compiled(kernel, a, out, n)
        np.testing.assert_array_equal(out, expected(case, a, n), f"{n} iterations")


@deuteron.jit
def ladder(a, out, n, N: tl.constexpr):
    """Each step goes up where the one below has been filled: states that branches add up, and begin anew."""
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    square = i * N + j
    x, y, z = tl.load(a + square), tl.load(a + N * N + square), tl.load(a + 2 * N * N + square)
    for k in range(n):
        seen = tl.zeros((N, N), tl.int32)
        if k & 1:
            seen += x.T
        if k & 2:
            seen += y.T ^ k
        tl.store(out + k * N * N + square, seen)
        if k != 4:
            x, y, z = x * 3, y * 3, z * 3
            x += tl.load(a + 3 * N * N + square)
            if k % 2 == 1:
                y += x
                x = tl.zeros((N, N), tl.int32)
            if k % 4 == 3:
                z += y
                y = tl.zeros((N, N), tl.int32)
    tl.store(out + n * N * N + square, x)
    tl.store(out + (n + 1) * N * N + square, y)
    tl.store(out + (n + 2) * N * N + square, z)


def climbed(a, n):
    (x, y, z, more), seen = a, []
    for k in range(n):
        seen.append((k & 1) * x.T + (y.T ^ k) * (k >> 1 & 1))
        if k != 4:
            x, y, z = 3 * x + more, 3 * y, 3 * z
            if k % 2 == 1:
                x, y = 0 * x, y + x
            if k % 4 == 3:
                y, z = 0 * y, z + y
    return np.stack([*seen, x, y, z])


def test_states_that_branches_change_stay_in_memory(rng, monkeypatch):
    """In a crowded kernel, half of the registers each: the loop carries none, and each is loaded where it is needed."""
    monkeypatch.setattr("deuteron.passes.gpu.SliceTiles", lambda: SliceTiles(least_cost=1000))
    monkeypatch.setattr("deuteron.passes.gpu.slices.slice_tiles.CROWDED_COST", 1000)
    monkeypatch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
    size, most = 64, 9
    a = aligned(rng.integers(-9, 9, (4, size, size)).astype(np.int32))
    out = aligned(np.empty((most + 3, size, size), np.int32))
    kernel = compile_for("cuda:90", ladder, a, out, most, N=size, num_warps=1)
    loop = kernel.asm["ttgir"].split("scf.for %k = ")[1]
    assert "tensor" not in loop.partition("{")[0]
    assert re.search(r'scf.if .*\n +%x_\w+ = "ttg.private_load"', loop)
    for n in (0, 1, 5, most):
        out.fill(77)
        emulate_compiled(kernel, a, out, n)
        np.testing.assert_array_equal(out[: n + 3], climbed(a, n), f"{n} iterations")
