"""Loads and stores: how wide they are, and what masks and replicas do to them."""

import re

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@deuteron.jit
def copy_all(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def drawn(rng, dtype, count):
    """Any bits but those of a NaN, at an address that is divisible by 16."""
    kind = np.uint8 if dtype is bool else dtype
    return aligned(rng.integers(0, 2 if dtype is bool else 100, count).astype(kind).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, ml_dtypes.bfloat16, np.float32, np.float64, bool])
@pytest.mark.parametrize("n", [1024, 1000, 992])
def test_masked_copy(rng, dtype, n):
    x = drawn(rng, dtype, 1024)
    out = aligned(np.zeros(1024, dtype))
    emulate(copy, x, out, n, BLOCK=512, grid=(2,), num_warps=2)
    np.testing.assert_array_equal(out[:n], x[:n])
    assert not out[n:].any()


@pytest.mark.parametrize(("dtype", "block"), [(np.int8, 2048), (np.float16, 1024), (np.float32, 512), (np.int64, 256)])
def test_aligned_neighbours_are_accessed_by_128_bits(dtype, block):
    x = aligned(np.zeros(block, dtype))
    kernel = compile_for("cuda:80", copy_all, x, x, BLOCK=block)
    assert len(instructions_with(kernel, "ld.global")) == 1 and len(instructions_with(kernel, "st.global")) == 1
    assert instructions_with(kernel, "ld.global.v4.b32") or instructions_with(kernel, "ld.global.v2.b64")


def test_a_mask_that_is_constant_over_a_vector_keeps_it_wide():
    x = aligned(np.zeros(1024, np.float32))
    assert instructions_with(compile_for("cuda:90", copy, x, x, 992, BLOCK=512), "ld.global.v4.b32")
    assert not instructions_with(compile_for("cuda:90", copy, x, x, 992, BLOCK=512), "ld.global.b32")
    assert instructions_with(compile_for("cuda:90", copy, x, x, 1000, BLOCK=512), "ld.global.b32")


@deuteron.jit
def gather_rows(index, x, out):
    rows, columns = tl.arange(0, 32), tl.arange(0, 64)
    row = tl.load(index + rows).to(tl.int64)
    tl.store(out + rows[:, None] * 64 + columns[None, :], tl.load(x + row[:, None] * 64 + columns[None, :]))


def test_rows_whose_numbers_are_loaded_are_accessed_by_128_bits(rng):
    """They are converted into the layout of the rows, which changes nothing of what is known of them."""
    index, x = aligned(rng.permutation(32).astype(np.int32)), drawn(rng, np.float32, 32 * 64)
    out = aligned(np.zeros((32, 64), np.float32))
    kernel = compile_for("cuda:90", gather_rows, index, x, out)
    assert instructions_with(kernel, "ld.global.v4.b32")
    emulate(gather_rows, index, x, out)
    np.testing.assert_array_equal(out, x.reshape(32, 64)[index])


@deuteron.jit
def sum_until_negative(x, out, n, BLOCK: tl.constexpr):
    pointers, total = x + tl.arange(0, BLOCK), tl.zeros([BLOCK], tl.float32)
    for _ in range(n):
        tile = tl.load(pointers)
        if tl.min(tile) < 0:
            break
        total += tile
        pointers += BLOCK
    tl.store(out + tl.arange(0, BLOCK), total)


def test_pointers_that_a_loop_with_a_break_advances_load_wide(rng):
    x, out = aligned(rng.random(2048, np.float32)), aligned(np.zeros(512, np.float32))
    kernel = compile_for("cuda:80", sum_until_negative, x, out, 4, BLOCK=512)
    assert len(instructions_with(kernel, "ld.global.v4.b32")) == 1
    assert not instructions_with(kernel, "ld.global.b32")
    x[1100] = -1
    emulate(sum_until_negative, x, out, 4, BLOCK=512)
    np.testing.assert_array_equal(out, x[:512] + x[512:1024])


def test_unknown_alignment_gives_narrow_accesses():
    x = aligned(np.zeros(1024, np.float32))[1:]
    kernel = compile_for("cuda:90", copy_all, x, x, BLOCK=512)
    assert not instructions_with(kernel, ".v2") and not instructions_with(kernel, ".v4")
    assert len(instructions_with(kernel, "ld.global")) == 4


@deuteron.jit
def store_few(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i, 1, sem="relaxed")


def test_a_tile_smaller_than_the_threads_is_stored_once():
    out = np.zeros(16, np.int32)
    emulate(store_few, out, BLOCK=16, num_warps=4)
    np.testing.assert_array_equal(out, 1)


@deuteron.jit
def with_policies(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i, eviction_policy="evict_first")
    b = tl.load(x + i, cache_modifier=".cg")
    tl.store(out + i, a + b, cache_modifier=".cs")


@deuteron.jit
def beside_volatile(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, eviction_policy="evict_first") + tl.load(x + i, volatile=True))


@deuteron.jit
def that_stay(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, 2 * BLOCK)
    some = i < BLOCK
    doubled = 2 * tl.load(x + i, mask=some, other=1, eviction_policy="evict_first")
    tl.store(out + i, doubled, mask=some, eviction_policy="evict_last")


@pytest.mark.parametrize(
    ("kernel", "texts"),
    [
        (with_policies, ["ld.global.L1::evict_first.L2::cache_hint", "ld.global.cg", "st.global.cs"]),
        (beside_volatile, ["ld.global.L1::evict_first.L2::cache_hint", "ld.volatile.global"]),
        (that_stay, ["st.global.L1::evict_last.L2::cache_hint", "createpolicy.fractional.L2::evict_last"]),
    ],
)
def test_cache_modifiers_and_eviction(rng, kernel, texts):
    x, out = drawn(rng, np.float32, 128), np.zeros(128, np.float32)
    compiled = emulate(kernel, x, out, BLOCK=128)
    np.testing.assert_array_equal(out, 2 * x)
    for text in texts:
        assert instructions_with(compiled, text), text
    assert len(instructions_with(compiled, "createpolicy.fractional.L2::evict_first")) == 1


@deuteron.jit
def load_other(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=-7))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.int64])
def test_masked_elements_hold_the_other_value(rng, dtype):
    x, out = drawn(rng, dtype, 512), aligned(np.zeros(512, dtype))
    emulate(load_other, x, out, 304, BLOCK=512, num_warps=1)
    np.testing.assert_array_equal(out, np.where(np.arange(512) < 304, x, -7).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float16, np.float32, np.int64])
def test_a_constant_other_is_written_beside_the_load(dtype):
    """In a register of all loads, the last of these would take it, and a loop copy it when that is done."""
    x = aligned(np.zeros(512, dtype))
    text = compile_for("cuda:90", load_other, x, x, 304, BLOCK=512, num_warps=1).asm["ptx"]
    for block in re.findall(r"begin inline asm\n([^/]*?ld\.global[^/]*)", text):
        *moves, load = block.strip().split("\n")
        registers = re.search(r"\{?((?:%r[d]?\d+(?:, )?)+)\}?, \[", load)[1].split(", ")
        assert [re.match(r"\s*mov\.b\d+ (\S+),", move)[1] for move in moves] == registers


@deuteron.jit
def scalar_copy(x, out, flag):
    if flag:
        tl.store(out, tl.load(x) + 1)


def test_a_scalar_is_stored_by_one_thread():
    x, out = np.array([41.0], np.float32), np.zeros(1, np.float32)
    kernel = emulate(scalar_copy, x, out, True)
    assert out[0] == 42
    assert [line for line in instructions_with(kernel, "st.global") if line.startswith("@")]


@deuteron.jit
def neighbour(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.maximum(i - 1, 0), 0))


def test_a_gather_of_the_neighbour_asks_other_lanes_for_one_register(rng):
    """In the layout of the load, in which a thread has all but the first of them."""
    x, out = drawn(rng, np.float32, 128), aligned(np.zeros(128, np.float32))
    kernel = compile_for("cuda:90", neighbour, x, out, BLOCK=128, num_warps=1)
    assert len(instructions_with(kernel, "shfl.sync")) == 1 and not instructions_with(kernel, "bar.")
    emulate(neighbour, x, out, BLOCK=128, num_warps=1)
    np.testing.assert_array_equal(out[1:], x[:-1])
