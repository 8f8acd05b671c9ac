"""Loads and stores: contiguous, strided, gathered, repeated; masks that switch off first, last and odd lanes."""

import re

import ml_dtypes
import numpy as np
import pytest

import deuteron.language as tl


def copy_masked(x, out, first, last, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i >= first) & (i < last)
    tl.store(out + i, tl.load(x + i, mask=mask, other=3), mask=mask)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int16, np.int64, np.uint8])
@pytest.mark.parametrize("first, last", [(0, 1000), (0, 1024), (37, 1000), (0, 0), (5, 6)])
def test_masked_copy(compare, rng, dtype, first, last):
    x = (100 * rng.random(last)).astype(dtype)
    out = np.full(last, 77, dtype)
    compare(copy_masked, [x, out, first, last], {"BLOCK": 256}, grid=(4,))


def copy_strided(x, out, step, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i * STEP, tl.load(x + i * step, mask=mask, other=0.0), mask=mask)


@pytest.mark.parametrize("step", [0, 1, 3])
@pytest.mark.parametrize("out_step", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_strides_known_and_unknown(compare, rng, step, out_step, dtype):
    x = (100 * rng.random(step * 99 + 1)).astype(dtype)
    out = np.full(out_step * 99 + 1, 77, dtype)
    compare(copy_strided, [x, out, step, 100], {"BLOCK": 128, "STEP": out_step})


def gather(x, indices, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(indices + i, mask=i < n, other=-1)
    on = (i < n) & (at >= 0)
    tl.store(out + at, tl.load(x + at, mask=on, other=-1), mask=on)


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [3, 14, 101])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int16, np.float16, ml_dtypes.bfloat16, np.float64])
def test_gather_and_scatter(compare, rng, dtype, n):
    """Also of what is narrower than the words that are gathered, at both ends of memory that may be read."""
    indices = rng.permutation(n).astype(np.int32)
    indices[rng.random(n) < 0.3] = -1
    x = (100 * rng.random(n)).astype(dtype)
    compare(gather, [x, indices, np.full(n, 55, dtype), n], {"BLOCK": 1 << (n - 1).bit_length()})


@pytest.mark.share(2)
@pytest.mark.parametrize("cpu", ["native", "x86-64-v4", "x86-64-v3"])
@pytest.mark.parametrize("n", [14, 101])
@pytest.mark.parametrize("dtype", [np.int16, np.float16, np.float32])
def test_arrays_that_are_gathered_from_begin_at_any_byte(run_in_place, rng, dtype, n, cpu):
    """An element may lie in two of the words that are gathered."""
    for begin in range(4):
        x = np.zeros((n + 2) * np.dtype(dtype).itemsize, np.uint8)[begin:][: n * np.dtype(dtype).itemsize].view(dtype)
        x[:] = rng.integers(-99, 100, n)
        indices, out = rng.permutation(n).astype(np.int32), np.zeros(n, dtype)
        run_in_place(gather, [x, indices, out, n], {"BLOCK": 1 << (n - 1).bit_length()}, cpu)
        np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize(("dtype", "block"), [(np.int8, 16), (np.int8, 64), (ml_dtypes.bfloat16, 32)])
def test_narrow_elements_are_gathered_in_words(lower_module, lower_python, dtype, block):
    module = lower_python(gather, [np.zeros(1, dtype), np.zeros(1, np.int32), np.zeros(1, dtype), 7], {"BLOCK": block})
    assert "@llvm.masked.gather.v16i32" in lower_module(module, "x86-64-v4").llir


def wrap(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i % n))


def test_wrapped_index_is_found_contiguous_or_not(compare, rng):
    compare(wrap, [rng.random(100, np.float32), np.zeros(256, np.float32), 100], {"BLOCK": 128}, grid=(2,))


def transpose(x, out, m, n, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    mask = (i[:, None] < m) & (j[None, :] < n)
    tile = tl.load(x + i[:, None] * n + j[None, :], mask=mask, other=0)
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile), mask=tl.trans(mask))


@pytest.mark.parametrize("m, n", [(64, 64), (61, 33), (1, 64)])
def test_transposed_store(compare, rng, m, n):
    x = rng.random((m, n), np.float32)
    expected = compare(transpose, [x, np.full((n, m), 9, np.float32), m, n], {"BLOCK": 64})
    np.testing.assert_array_equal(expected[1], x.T)


def scalars(x, out, n):
    i = tl.program_id(0)
    value = tl.load(x + i, mask=i < n, other=7)
    tl.store(out + i, value * 2, mask=i < n)


def test_scalar_accesses(compare, rng):
    compare(scalars, [rng.integers(0, 99, 5, np.int32), np.zeros(5, np.int32), 5], grid=(9,))


def bools(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    b = tl.load(x + i)
    tl.store(out + i, b ^ (i % 2 == 0))


def test_bools_are_bytes(compare, rng):
    compare(bools, [rng.random(64) < 0.5, np.zeros(64, bool)], {"BLOCK": 64})


def one_mask_for_all(x, out, on, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = (i >= 0) & on
    tl.store(out + i, tl.load(x + i, mask=mask, other=4.0), mask=mask)


@pytest.mark.parametrize("on", [True, False])
def test_uniform_mask(compare, rng, on):
    size = 32 if on else 0
    compare(one_mask_for_all, [rng.random(size, np.float32), np.zeros(size, np.float32), on], {"BLOCK": 32})


def narrow_some_lanes(x, out, FIRST: tl.constexpr, LAST: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty), mask=(i >= FIRST) & (i <= LAST))


@pytest.mark.share(2)
@pytest.mark.parametrize("N", [2, 4, 8, 32])
@pytest.mark.parametrize(
    "wide, narrow",
    [
        (np.int64, np.int32),
        (np.int64, np.int16),
        (np.int64, np.int8),
        (np.int32, np.int8),
        (np.int16, np.int8),
        (np.float64, np.float32),
    ],
)
def test_a_masked_store_of_narrowed_elements_leaves_the_neighbours(compare, wide, narrow, N):
    for first, last in [(0, 0), (1, 1), (N - 1, N - 1), (0, 1)]:
        args = [np.arange(1, N + 1, dtype=wide), np.full(N, -1, narrow)]
        compare(narrow_some_lanes, args, {"N": N, "FIRST": first, "LAST": last})


def atomics_after_loads(x, y, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.atomic_add(x + 1 + i, a)
    b = tl.load(y + i // 2)
    tl.atomic_max(y + i // 2, b + i)


def test_an_atomic_finds_what_was_loaded_before_all_its_lanes(compare, rng):
    compare(atomics_after_loads, [rng.integers(0, 99, 65).astype(np.int32) for _ in range(2)], {"N": 64})


def chosen_pointers(x, y, out, choice, N: tl.constexpr):
    """What is stored to is x or y, so that the loads of both have to be done before."""
    i = tl.arange(0, N)
    target = x if choice > 0 else y
    tl.store(target + 1 + i, tl.load(x + i) + tl.load(y + i))
    both = tl.where(i % 2 == 0, x + i, y + i)
    tl.store(x + 2 + i, tl.load(both) * 2)
    first, second = x, y
    for _ in range(3):
        tl.store(second + 1 + i, tl.load(first + i) + 1)
        first = second
    tl.store(out + i, tl.load(first + i))


@pytest.mark.parametrize("choice", [0, 1])
def test_pointers_that_may_be_several_arguments(compare, rng, choice):
    arrays = [rng.integers(0, 99, 80).astype(np.int32) for _ in range(3)]
    compare(chosen_pointers, [*arrays, choice], {"N": 64})


def test_loads_have_masks_only_where_lanes_are_off(lower_python, lower_module):
    """Loads without masks are fetched ahead."""
    x = np.zeros(256, np.float32)
    module = lower_python(copy_masked, [x, x, 0, 1000], {"BLOCK": 256})
    llir = lower_module(module, cpu="x86-64-v4").llir
    assert (llir.count("= load <64 x float>"), llir.count("= load <16 x float>")) == (1, 1)
    assert llir.count("call <16 x float> @llvm.masked.load") == 1


def compared(x, out, offset, limit, KIND: tl.constexpr, SWAP: tl.constexpr, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = offset + i * STEP
    if KIND == "lt":
        mask = limit > at if SWAP else at < limit
    elif KIND == "le":
        mask = limit >= at if SWAP else at <= limit
    elif KIND == "gt":
        mask = limit < at if SWAP else at > limit
    else:
        mask = limit <= at if SWAP else at >= limit
    both = mask & (i < BLOCK - 3)
    tl.store(out + i, tl.load(x + i, mask=mask, other=5) + tl.load(x + i, mask=both, other=9), mask=mask)


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("kind", ["lt", "le", "gt", "ge"])
def test_masks_that_are_full_at_their_first_and_last_lanes(compare, rng, kind, swap):
    """Also of numbers that wrap around within the lanes, and of limits at the lanes' ends."""
    largest, lanes = 2**31 - 1, 128
    x, constexprs = rng.random(lanes, np.float32), {"KIND": kind, "SWAP": swap, "STEP": 1, "BLOCK": lanes}
    offsets = [0, -5, largest - lanes // 2, -(2**31)]
    for offset, above in ((at, above) for at in offsets for above in (-1, 0, 1, lanes - 1, lanes)):
        limit = min(max(offset + above, -(2**31)), largest)
        compare(compared, [x, np.full_like(x, 77), offset, limit], constexprs, cpus=["native"])
    compare(compared, [x, np.full_like(x, 77), 3, 100], constexprs | {"STEP": 3})
    compare(compared, [x, np.full_like(x, 77), 3, 100], constexprs | {"STEP": -1})


def cut(x, out, first, used, BLOCK: tl.constexpr):
    """Numbers of 64 bits, of which the lower half wraps around at the lane from which on it is used."""
    i = tl.arange(0, BLOCK)
    place = (first + i.to(tl.int64)).to(tl.int32)
    tl.store(out + i, tl.load(x + 2147483648 + place, mask=i >= used, other=5))


@pytest.mark.parametrize("used", [1, 7, 8, 64])
def test_offsets_that_are_cut_wrap_around(compare, rng, used):
    x, out = rng.integers(0, 99, 128 - used).astype(np.int8), np.zeros(128, np.int8)
    compare(cut, [x, out, 2**31 - used, used], {"BLOCK": 128})


def copy_of_batch(x, out, n, BLOCK: tl.constexpr):
    i, batch = tl.arange(0, BLOCK), tl.program_id(1).to(tl.int64) * n
    at = tl.program_id(0) * n + i
    tl.store(out + batch + at, tl.load(x + batch + at, mask=i < n, other=0), mask=i < n)


def test_whether_offsets_wrap_is_asked_of_the_last_lane(lower_module, lower_python):
    """And not of each, in vectors of addresses, where the pointer is moved by 64 bits besides."""
    module = lower_python(copy_of_batch, [np.zeros(1, np.float32), np.zeros(1, np.float32), 7], {"BLOCK": 64})
    text = lower_module(module, "x86-64-v4").llir
    assert re.search(r"icmp eq i64", text)
    assert not re.search(r"icmp eq <\d+ x i64>", text)


def test_offsets_of_64_bits_do_not_wrap(lower_module, lower_python):
    def copy(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0).to(tl.int64) * n + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n, other=0), mask=i < n)

    module = lower_python(copy, [np.zeros(1, np.float32), np.zeros(1, np.float32), 7], {"BLOCK": 64})
    assert "straight" not in lower_module(module, "x86-64-v4").llir


def masked_copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=3), mask=i < n)


def test_registers_without_a_lane_on_are_not_accessed(lower_python, lower_module):
    """A masked access of a vector of four registers is one of each, which is skipped where none of its lanes is on."""
    x = np.zeros(64, np.float32)
    llir = lower_module(lower_python(masked_copy, [x, x, 33], {"BLOCK": 64})).llir
    assert len(re.findall(r"call void @llvm.masked.store.v16f32", llir)) == 4
    assert "masked.store.v64f32" not in llir and "masked.load.v64f32" not in llir


@pytest.mark.parametrize("n", [0, 1, 16, 17, 33, 48, 63, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.int64])
def test_some_of_a_few_registers(compare, rng, dtype, n):
    x = rng.integers(0, 99, max(n, 1)).astype(dtype)
    compare(masked_copy, [x, np.zeros(max(n, 1), dtype), n], {"BLOCK": 64})
