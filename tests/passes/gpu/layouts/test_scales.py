"""Scales of rows and columns beside dots: loaded by all threads that need them, or once and exchanged."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def scaled(a, b, rows, columns, ids, out, K, stride, N: tl.constexpr, BLOCK: tl.constexpr, M: tl.constexpr = 64):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    numbers = tl.load(ids + m)
    acc = tl.zeros([M, N], tl.float32)
    for start in range(0, K, BLOCK):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + n[None, :] * K + start + k[:, None])
        row = tl.load(rows + numbers * stride + start // BLOCK)
        column = tl.load(columns + n * stride + start // BLOCK)
        acc += tl.dot(x, y) * row[:, None] * column[None, :]
    tl.store(out + m[:, None] * N + n[None, :], acc)


def case(rng, steps: int, stride: int, is_permuted: bool = True) -> tuple[tuple, np.ndarray]:
    """Arguments for so many steps, and what the product is."""
    a, b = (aligned(rng.standard_normal((64, 64 * steps)).astype(np.float16)) for _ in range(2))
    rows, columns = (aligned(rng.random((66, stride)).astype(np.float32) + 0.5) for _ in range(2))
    ids = aligned((rng.permutation(64) if is_permuted else np.arange(64)).astype(np.int32))
    out = aligned(np.zeros((64, 64), np.float32))
    expected = np.zeros((64, 64))
    for step in range(steps):
        here = slice(64 * step, 64 * step + 64)
        product = a[:, here].astype(np.float64) @ b[:, here].T.astype(np.float64)
        row, column = (x.ravel()[np.arange(64) * stride + step] for x in (rows, columns))
        expected += product * row[ids][:, None] * column[None, :]
    return (a, b, rows, columns, ids, out, 64 * steps, stride), expected


@pytest.mark.parametrize(("stride", "most"), [(3, 6), (1, 16)])
def test_scales_that_are_no_neighbours_are_loaded_once(rng, stride, most):
    """Neighbours take an access of 8 bytes for each two, and no addresses of their own."""
    arguments, expected = case(rng, 2, stride)
    kernel = compile_for("cuda:90", scaled, *arguments, N=64, BLOCK=64)
    assert "ttng.warp_group_dot" in kernel.asm["ttgir"]
    assert len(instructions_with(kernel, "ld.global")) <= most
    emulate_compiled(kernel, *arguments)
    np.testing.assert_allclose(arguments[5], expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_scales_that_are_exchanged_are_copied_ahead(rng, stages, steps):
    """Those of columns: to shared memory, through which they go anyway; no exchange and no barriers of their own."""
    arguments, expected = case(rng, steps, 7)
    kernel = compile_for("cuda:90", scaled, *arguments, N=64, BLOCK=64, num_stages=stages)
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert "ttng.warp_group_dot" in loop and "ttg.convert_layout" not in loop
    assert loop.count("tt.load") == loop.count("ttg.barrier") == 1
    emulate_compiled(kernel, *arguments)
    np.testing.assert_allclose(arguments[5], expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_scales_beside_mma_are_copied_once(rng, steps):
    """A thread copies the scale of one of 64 columns, where some would copy those of four; of rows two."""
    arguments, expected = case(rng, steps, 7)
    kernel = compile_for("cuda:90", scaled, *arguments, N=64, BLOCK=64, M=16, num_stages=3)
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert "tt.dot" in loop and "ttg.convert_layout" not in loop
    ahead = 3  # two iterations before the loop, and one in it
    assert len(instructions_with(kernel, "cp.async.ca")) == (2 + 1) * ahead
    emulate_compiled(kernel, *arguments)
    np.testing.assert_allclose(arguments[5].ravel()[: 16 * 64], expected[:16].ravel(), rtol=1e-3, atol=1e-2)


@deuteron.jit
def advanced(a, b, rows, columns, out, K, stride, N: tl.constexpr, BLOCK: tl.constexpr, M: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    row_scale, column_scale = rows + m * stride, columns + n * stride
    acc = tl.zeros([M, N], tl.float32)
    for start in range(0, K, BLOCK):
        x = tl.load(a + m[:, None] * K + start + k[None, :])
        y = tl.load(b + n[None, :] * K + start + k[:, None])
        acc += tl.dot(x, y) * tl.load(row_scale)[:, None] * tl.load(column_scale)[None, :]
        row_scale += 1
        column_scale += 1
    tl.store(out + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("rows", [64, 16])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_addresses_of_scales_are_carried_where_these_are_needed(rng, steps, rows):
    """They were carried where neighbours are, and exchanged in each iteration. Beside wgmma the scales of the next one
    are under way.
    """
    arguments, expected = case(rng, steps, 7, is_permuted=False)
    arguments = (*arguments[:4], *arguments[5:])
    kernel = compile_for("cuda:90", advanced, *arguments, N=64, BLOCK=64, M=rows, num_stages=3)
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert "ttg.convert_layout" not in loop
    assert ("into-registers" in loop) == ("ttng.warp_group_dot" in loop) == (rows == 64)
    emulate_compiled(kernel, *arguments)
    np.testing.assert_allclose(arguments[4].ravel()[: rows * 64], expected[:rows].ravel(), rtol=1e-3, atol=1e-2)


@deuteron.jit
def counted(a, b, counts, out, steps, N: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in range(steps):
        acc = tl.dot(tl.load(a + step * N * N + square), tl.load(b + step * N * N + square), acc)
        scale = tl.load(counts + i)
        acc = acc * scale[:, None] + scale[None, :]
        if CASE == "updated":
            tl.atomic_add(counts + i, 1.0, sem="relaxed")
    tl.store(out + square, acc)


@pytest.mark.parametrize(("case", "loads"), [("plain", 2), ("updated", 1)])
def test_scales_that_other_programs_may_change_are_loaded_once(case, loads):
    """Else rows could be multiplied by another number than columns are."""
    halves, singles = np.zeros(1 << 14, np.float16), np.zeros(1 << 14, np.float32)
    kernel = compile_for("cuda:90", counted, halves, halves, singles, singles.copy(), 4, N=64, CASE=case)
    loop = kernel.asm["ttgir"].partition("scf.for")[2]
    lines = [line for line in loop.splitlines() if "tt.load" in line and "%scale" in line]
    assert len(lines) == loads
