"""What one CTA of a cluster stores and another loads or stores: in the order of the program, or refused."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.errors import UsageError

BARRIER = '"ttng.cluster_barrier"'
FLOATS = aligned(np.zeros(4, np.float32))


@deuteron.jit
def store_in_turn(x, out, n, step, BLOCK: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for k in range(n):
        v = tl.load(x + k * BLOCK + i)
        if CASE == "overlapping":
            tl.store(out + k * 8 + i, v)
        elif CASE == "at a step":
            tl.store(out + k * step + i, v)
        elif CASE == "exchanged":
            tl.atomic_xchg(out + k * 8 + i, v)
        elif CASE == "in place":
            tl.store(out + k * 8 + i, v + tl.load(out + k * 8 + i))
        elif CASE == "nested":
            for again in range(2):
                tl.store(out + (k + again) * 8 + i, v + again)


def in_turn(x, out, case, step):
    """What the iterations do, one after the other."""
    for k, v in enumerate(x):
        at = slice(k * step, k * step + x.shape[1])
        if case == "nested":
            out[at] = v
            out[at.start + 8 : at.stop + 8] = v + 1
        else:
            out[at] = v + out[at] if case == "in place" else v


@pytest.mark.parametrize("case", ["overlapping", "at a step", "exchanged", "in place", "nested"])
@pytest.mark.parametrize("num_ctas", [2, 4])
def test_iterations_begin_together(case, num_ctas, rng):
    step = 24 if case == "at a step" else 8
    x = rng.integers(-99, 99, (7, 256)).astype(np.float32)
    out = rng.integers(-99, 99, 512).astype(np.float32)
    expected = out.copy()
    in_turn(x, expected, case, step)
    kernel = emulate(store_in_turn, x, out, 7, step, BLOCK=256, CASE=case, num_ctas=num_ctas, num_warps=1)
    np.testing.assert_array_equal(out, expected)
    assert generic_asm(kernel, "ttgir").count(BARRIER) == 1


@deuteron.jit
def own_parts(x, out, n, CASE: tl.constexpr):
    i = tl.arange(0, 256)
    for k in range(n):
        v = tl.load(x + k * 256 + i)
        if CASE == "tile by tile":
            tl.store(out + k * 256 + i, v)
        elif CASE == "one place":
            tl.store(out + i, v)
        elif CASE == "in place":
            tl.store(out + k * 256 + i, v + tl.load(out + k * 256 + i))
        else:
            tl.atomic_add(out + k * 8 + i, v)


@pytest.mark.parametrize("case", ["tile by tile", "one place", "in place", "sums"])
def test_no_cta_waits_for_what_is_its_own(case):
    kernel = compile_for("cuda:90", own_parts, FLOATS, FLOATS, 7, num_ctas=2, CASE=case)
    assert BARRIER not in generic_asm(kernel, "ttgir")


@deuteron.jit
def blocks(x, out, n, step, CASE: tl.constexpr):
    to = tl.make_tensor_descriptor(out, [1024, 64], [64, 1], [64, 64])
    i, j = tl.arange(0, 64), tl.arange(0, 64)
    tile = tl.load(x + i[:, None] * 64 + j[None, :])
    if CASE == "twice":
        to.store([0, 0], tile)
        to.store([8, 0], tile + 1)
    elif CASE == "loaded":
        to.store([0, 0], tile)
        tl.store(x + i[:, None] * 64 + j[None, :], to.load([step, 0]))
    else:
        for k in range(n):
            to.store([k * (8 if CASE == "steps" else step if CASE == "a step" else 64), 0], tile + k)


@pytest.mark.parametrize("case", ["twice", "loaded", "steps", "a step"])
def test_blocks_of_a_descriptor_that_may_overlap(case):
    with pytest.raises(UsageError, match="its CTAs do not wait for it"):
        compile_for("cuda:90", blocks, FLOATS, FLOATS, 7, 5, num_ctas=2, CASE=case)


def test_blocks_of_a_descriptor_at_multiples_of_their_size():
    assert BARRIER not in generic_asm(
        compile_for("cuda:90", blocks, FLOATS, FLOATS, 7, 5, num_ctas=2, CASE="x"), "ttgir"
    )


@deuteron.jit
def stored_before(x, out, n, CASE: tl.constexpr):
    i = tl.arange(0, 64)
    tl.store(x + i, i.to(tl.float32))
    if CASE == "loaded atomically":
        v = tl.atomic_load(x + 63 - i, sem="relaxed")
    else:
        rows = tl.make_tensor_descriptor(x, [64, 64], [64, 1], [1, 64])
        v = tl.sum(rows.gather(i % 8, 0), 1)
    tl.store(out + i, v)


@pytest.mark.parametrize("case", ["loaded atomically", "gathered"])
def test_what_is_read_in_other_ways(case):
    with pytest.raises(UsageError, match="its CTAs do not wait for it|cannot share"):
        compile_for("cuda:90", stored_before, FLOATS, FLOATS, 7, num_ctas=2, CASE=case)


@deuteron.jit
def one_number(x, out, n, CASE: tl.constexpr):
    i = tl.arange(0, 256)
    v = tl.load(x)
    if CASE == "through one argument":
        tl.store(x, v + 1)
    else:
        tl.store(out, v + 1)
        v += tl.load(x + 1)
    tl.store(x + 64 + i, v + i.to(tl.float32))


def test_number_that_all_load_and_the_first_stores():
    """The first may store it before another one loads it."""
    with pytest.raises(UsageError, match="its CTAs do not wait for it"):
        compile_for("cuda:90", one_number, FLOATS, FLOATS, 7, num_ctas=2, CASE="through one argument")


def test_number_that_is_stored_through_another_argument():
    """The kernel relies on these being disjoint, and not on that they are disjoint or the same."""
    kernel = compile_for("cuda:90", one_number, FLOATS, FLOATS, 7, num_ctas=2, CASE="through two")
    assert "tt.apart = #tt.pairs<[0, 1, 0, 0, 0]>" in generic_asm(kernel, "ttgir")


@deuteron.jit
def loaded_from_another(x, out, n):
    i = tl.arange(0, 64)
    for k in range(n):
        v = tl.load(x + k * 64 + i)
        tl.store(out + k * 64 + i, v)
        tl.store(x + k * 64 + 96 + i, v + k)


def test_what_another_stores_is_not_loaded_an_iteration_ahead(rng):
    """Of what a CTA stores itself it loads nothing in the next iteration, but the second one what the first stores."""
    x, out = rng.integers(-99, 99, 640).astype(np.float32), np.zeros(448, np.float32)
    expected, loaded = x.copy(), out.copy()
    for k in range(7):
        loaded[k * 64 : k * 64 + 64] = expected[k * 64 : k * 64 + 64]
        expected[k * 64 + 96 : k * 64 + 160] = loaded[k * 64 : k * 64 + 64] + k
    x, out = aligned(x), aligned(out)
    emulate(loaded_from_another, x, out, 7, num_ctas=2, num_warps=1)
    np.testing.assert_array_equal(out, loaded)
    np.testing.assert_array_equal(x, expected)
