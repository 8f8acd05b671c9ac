"""Loads of what a kernel does not change go the way of read-only data; those that a store may come before do not."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, instructions_with

import deuteron
import deuteron.language as tl

N = 256


@deuteron.jit
def scale(x, weight, out, ROUNDS: tl.constexpr):
    i = tl.arange(0, 256)
    for _ in tl.static_range(ROUNDS):
        tl.store(out + i, tl.load(x + i) * tl.load(weight + i, mask=i < 250, other=2.0))


@deuteron.jit
def scale_in_place(x, weight):
    i = tl.arange(0, 256)
    tl.store(x + i, tl.load(x + i) * tl.load(weight + i))


@deuteron.jit
def scale_by_blocks(x, weight, out, n):
    for start in range(0, n, 64):
        i = start + tl.arange(0, 64)
        tl.store(out + i, tl.load(x + i) * tl.load(weight + i))


@deuteron.jit
def sum_blocks(x, out, n):
    acc = tl.zeros((64,), tl.float32)
    for start in range(0, n, 64):
        acc += tl.load(x + start + tl.arange(0, 64))
    tl.store(out + tl.arange(0, 64), acc)


@deuteron.jit
def store_or_load(x, out, n):
    i = tl.arange(0, 256)
    if n > 0:
        tl.store(out + i, tl.load(x + i))
    else:
        tl.store(out + i, -tl.load(x + i))


@deuteron.jit
def count(x, out, counter):
    i = tl.arange(0, 256)
    tl.store(out + i, tl.load(x + i))
    tl.atomic_add(counter, 1)


@deuteron.jit
def through_a_table(table, out):
    i = tl.arange(0, 256)
    x = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(out + i, tl.load(x + i))


@deuteron.jit
def read_as_asked(x, weight, out):
    i = tl.arange(0, 256)
    y = tl.load(x + i) * tl.load(weight + i, cache_modifier=".cg")
    tl.store(out + i, y + tl.load(weight + i, eviction_policy="evict_last"))


@deuteron.jit
def sums_of_rows(x, out, ROWS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * 256 + tl.arange(0, 256)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=1))


def draw(rng):
    return aligned(rng.standard_normal(N).astype(np.float32))


def loads(kernel):
    """How many go the way of read-only data, and how many do not."""
    invariant = len(instructions_with(kernel, "ld.global.nc"))
    return invariant, len(instructions_with(kernel, "ld.global")) - invariant


def test_what_is_not_stored_to_is_invariant(rng):
    x, weight, out = draw(rng), draw(rng), draw(rng)
    kernel = emulate(scale, x, weight, out, ROUNDS=1, num_warps=1)
    np.testing.assert_array_equal(out, x * np.where(np.arange(N) < 250, weight, 2))
    assert loads(kernel)[0] > 2 and loads(kernel)[1] == 0


def test_an_array_that_is_updated_in_place(rng):
    x, weight = draw(rng), draw(rng)
    expected = x * np.where(np.arange(N) < 250, weight, 2)
    emulate(scale, x, weight, x, ROUNDS=1, num_warps=1)
    np.testing.assert_array_equal(x, expected)
    expected = x * weight
    kernel = emulate(scale_in_place, x, weight, num_warps=1)
    np.testing.assert_array_equal(x, expected)
    assert loads(kernel) == (2, 2)


def test_after_a_store_nothing_is(rng):
    kernel = compile_for("cuda:90", scale, draw(rng), draw(rng), draw(rng), ROUNDS=2, num_warps=4)
    invariant, others = loads(kernel)
    assert invariant and others


def test_a_loop_with_a_store_has_none_and_one_before_it_has(rng):
    """What the first iteration loads is loaded before it."""
    x, out = draw(rng), draw(rng)
    invariant, others = loads(compile_for("cuda:90", scale_by_blocks, x, draw(rng), out, N))
    assert invariant == others
    assert loads(compile_for("cuda:90", sum_blocks, x, out, N))[1] == 0


def test_rows_that_are_scanned_are_loaded_before_the_first_is_stored(rng):
    x, out = rng.standard_normal((4, N)).astype(np.float32), np.zeros((4, N), np.float32)
    kernel = emulate(sums_of_rows, x, out, ROWS=4, num_warps=1)
    np.testing.assert_allclose(out, x.cumsum(1, dtype=np.float64), atol=1e-4)
    assert loads(kernel)[0] == 0


def test_the_other_branch_does_not_come_first(rng):
    assert loads(compile_for("cuda:90", store_or_load, draw(rng), draw(rng), N))[1] == 0


@pytest.mark.parametrize("kernel", [count, through_a_table])
def test_atomics_and_pointers_from_memory(rng, kernel):
    others = (draw(rng), np.zeros(1, np.int32)) if kernel is count else (draw(rng),)
    first = draw(rng) if kernel is count else np.zeros(1, np.int64)
    assert all("ld.global.nc" not in line for line in _tiles(compile_for("cuda:90", kernel, first, *others)))


@deuteron.jit
def after_block(x, y, out, by_reduction: tl.constexpr):
    """The block of `y`, which may be `x`, is written by TMA before `x` is read."""
    i = tl.arange(0, 256)
    made = tl.make_tensor_descriptor(y, [256], [1], [256])
    if by_reduction:
        made.atomic_add([0], i)
    else:
        made.store([0], i)
    tl.store(out + i, tl.load(x + i))


@pytest.mark.parametrize("by_reduction", [False, True])
def test_what_tma_writes_comes_first_too(by_reduction):
    x, y, out = (aligned(np.zeros(256, np.int32)) for _ in range(3))
    kernel = compile_for("cuda:90", after_block, x, y, out, by_reduction=by_reduction)
    assert instructions_with(kernel, "cp.reduce.async.bulk" if by_reduction else "cp.async.bulk")
    assert loads(kernel)[0] == 0


def _tiles(kernel):
    return [line for line in instructions_with(kernel, "ld.global") if ".b64" not in line]


def test_what_a_kernel_says_of_caches_stays(rng):
    kernel = compile_for("cuda:90", read_as_asked, draw(rng), draw(rng), draw(rng))
    for text in ("ld.global.cg", "ld.global.nc.L1::evict_last"):
        assert instructions_with(kernel, text)
