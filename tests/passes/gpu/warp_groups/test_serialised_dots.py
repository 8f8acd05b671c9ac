"""Dots by wgmma of which the assembler would wait for each instruction, since tiles fill the registers, are left to
warps where these have room.
"""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled

import deuteron
import deuteron.language as tl


@deuteron.jit
def many(a, b, out, N: tl.constexpr, M: tl.constexpr, COUNT: tl.constexpr):
    """Each sum is needed again at the end."""
    i, j = tl.arange(0, N), tl.arange(0, M)
    y = tl.load(b + i[:, None] * M + j[None, :])
    sums = ()
    for k in tl.static_range(COUNT):
        x = tl.load(a + k * N * N + i[:, None] * N + i[None, :])
        sums = sums + (tl.dot(x, y),)
    total = tl.zeros((N, M), tl.float32)
    for k in tl.static_range(COUNT):
        total = tl.maximum(total * 0.5, sums[COUNT - 1 - k])
    tl.store(out + i[:, None] * M + j[None, :], total)


@pytest.mark.parametrize("count", [6, 12])
def test_dots_whose_sums_fill_the_registers_in_any_case_stay_with_warpgroups(rng, count):
    """A sum takes 64 registers of 255. By mma.sync a kernel like the second took 370 us in the place of 240."""
    a = aligned(rng.integers(-2, 3, (count, 64, 64)).astype(np.float16))
    b = aligned(rng.integers(-2, 3, (64, 128)).astype(np.float16))
    out = aligned(np.zeros((64, 128), np.float32))
    kernel = compile_for("cuda:90", many, a, b, out, N=64, M=128, COUNT=count, num_warps=4)
    assert "wgmma.mma" in kernel.asm["ptx"] and "waited for one by one" not in kernel.asm["ttgir"]
    emulate_compiled(kernel, a, b, out)
    total = np.zeros((64, 128), np.float32)
    for x in a[::-1]:
        total = np.maximum(total * 0.5, x.astype(np.float32) @ b.astype(np.float32))
    np.testing.assert_allclose(out, total)


@deuteron.jit
def gradients(x, out, N: tl.constexpr, M: tl.constexpr, COUNT: tl.constexpr):
    """Each tile is needed by several dots."""
    i = tl.arange(0, N)[:, None]
    at, size = i * M + tl.arange(0, M)[None, :], N * M
    tiles = ()
    for k in tl.static_range(COUNT):
        tiles = tiles + (tl.load(x + k * size + at),)
    for k in tl.static_range(COUNT):
        s = tl.dot(tiles[k], tl.trans(tiles[(k + 1) % COUNT]))
        s = tl.where(i >= tl.arange(0, N)[None, :], s, 0.0)
        y = tl.dot(s, tiles[(k + 2) % COUNT]) + tl.dot(tl.trans(s), tiles[(k + 3) % COUNT])
        tl.store(out + k * size + at, y * tiles[k])


def test_dots_that_loops_over_slices_have_room_for_are_left_to_warps(rng):
    count = 8
    x = aligned(rng.integers(-2, 3, (count, 64, 128)).astype(np.float32))
    out = aligned(np.zeros_like(x))
    kernel = compile_for("cuda:90", gradients, x, out, N=64, M=128, COUNT=count, num_warps=4)
    assert "wgmma.mma" not in kernel.asm["ptx"] and "waited for one by one" in kernel.asm["ttgir"]
    emulate_compiled(kernel, x, out)
    for k in range(count):
        second, third, fourth = (x[(k + more) % count] for more in (1, 2, 3))
        s = np.tril(x[k] @ second.T)
        np.testing.assert_allclose(out[k], (s @ third + s.T @ fourth) * x[k])


@deuteron.jit
def updated(x, states, n, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    y = tl.load(x + at)
    held = ()
    for k in tl.static_range(12):
        held = held + (tl.load(states + k * N * N + at),)
    for step in range(n):
        moved = ()
        for k in tl.static_range(12):
            state = held[k]
            if step == k:
                state = tl.exp(state) + tl.dot(y, state.to(tl.float16))
            moved = moved + (state,)
        held = moved
    for k in tl.static_range(12):
        tl.store(states + k * N * N + at, held[k])


def test_what_only_passes_a_block_leaves_room():
    """States that branches of a loop update, each by its dot, are in memory where another branch is taken."""
    n, x = 64, aligned(np.zeros((64, 64), np.float16))
    states = aligned(np.zeros((12, 64, 64), np.float32))
    kernel = compile_for("cuda:90", updated, x, states, 4, N=n, num_warps=4)
    assert "wgmma.mma" in kernel.asm["ptx"]
