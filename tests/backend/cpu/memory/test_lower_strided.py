"""Lanes that are a few elements apart: whole vectors, and shuffles; what is between lanes is not written."""

from __future__ import annotations

import re

import numpy as np
import pytest

import deuteron.language as tl

BLOCK = 64


def of_every(x, out, first, n, STEP: tl.constexpr, OUT_STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i >= first) & (i < n)
    tl.store(out + i * OUT_STEP, tl.load(x + i * STEP, mask=mask, other=7), mask=mask)


@pytest.mark.share(2)
@pytest.mark.parametrize("step, out_step", [(2, 1), (1, 2), (3, 2), (4, 3), (5, 7), (8, 4), (2, 40)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int16, np.int64])
def test_strides(compare, rng, dtype, step, out_step):
    """The arrays end with the last element that is asked for."""
    n = 3 * BLOCK - 5
    x = (100 * rng.random(step * (n - 1) + 1)).astype(dtype)
    out = np.full(out_step * (n - 1) + 1, 77, dtype)
    constexprs = {"STEP": step, "OUT_STEP": out_step, "BLOCK": BLOCK}
    made = compare(of_every, [x, out, 2, n], constexprs, grid=(4,))[1]
    expected = np.full_like(out, 77)
    expected[2 * out_step :: out_step] = x[2 * step :: step]
    np.testing.assert_array_equal(made, expected)


def products_of_pairs(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a, b = tl.load(x + 2 * i, mask), tl.load(x + 2 * i + 1, mask)
    c, d = tl.load(y + 2 * i, mask), tl.load(y + 2 * i + 1, mask)
    tl.store(out + 2 * i, a * c - b * d, mask)
    tl.store(out + 2 * i + 1, a * d + b * c, mask)


def products_of_split_pairs(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    mask = i < 2 * n
    a, b = tl.split(tl.reshape(tl.load(x + i, mask), (BLOCK, 2)))
    c, d = tl.split(tl.reshape(tl.load(y + i, mask), (BLOCK, 2)))
    tl.store(out + i, tl.interleave(a * c - b * d, a * d + b * c), mask)


@pytest.mark.parametrize("kernel", [products_of_pairs, products_of_split_pairs])
@pytest.mark.parametrize("n", [1, 63, 100, 128])
def test_complex_products(compare, rng, kernel, n):
    x, y = (rng.integers(-9, 9, 2 * n).astype(np.float32) for _ in range(2))
    made = compare(kernel, [x, y, np.full(2 * n, 77, np.float32), n], {"BLOCK": BLOCK}, grid=(2,))[2]
    np.testing.assert_array_equal(made.view(np.complex64), x.view(np.complex64) * y.view(np.complex64))


def turned_in_place(x, cos, sin, heads, H: tl.constexpr, D: tl.constexpr):
    head, pair = tl.arange(0, H)[:, None], tl.arange(0, D // 2)[None, :]
    mask, at = head < heads, x + head * D + 2 * pair
    a, b = tl.load(at, mask), tl.load(at + 1, mask)
    c, s = tl.load(cos + pair), tl.load(sin + pair)
    tl.store(at, a * c - b * s, mask)
    tl.store(at + 1, b * c + a * s, mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_pairs_in_place(compare, rng, dtype):
    x = rng.integers(-9, 9, 5 * 32).astype(dtype)
    cos, sin = (rng.integers(-3, 3, 16).astype(dtype) for _ in range(2))
    compare(turned_in_place, [x, cos, sin, 5], {"H": 8, "D": 32})


def neighbours_that_are_stored_first(x, out, n, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    """What is stored is loaded at another index, unless the shift is odd."""
    i = tl.arange(0, BLOCK)
    tl.store(x + 2 * i + 16, tl.load(out + i, i < n), i < n)
    tl.store(out + i, tl.load(x + 2 * i + SHIFT, i < n), i < n)
    tl.store(x + 2 * i + SHIFT, 3.0, i < n)


@pytest.mark.parametrize("shift", [0, 1, 16, 17, 40])
def test_stores_keep_their_order(compare, rng, shift):
    x, out = rng.random(300).astype(np.float32), rng.random(100).astype(np.float32)
    compare(neighbours_that_are_stored_first, [x, out, 100], {"BLOCK": 128, "SHIFT": shift})


def every_second(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + 2 * i) + tl.load(x + 2 * i + 1))


def test_nothing_is_gathered(lower_python, lower_module):
    x = np.zeros(2 * BLOCK, np.float32)
    llir = lower_module(lower_python(every_second, [x, x], {"BLOCK": BLOCK})).llir
    assert "gather" not in llir and "shufflevector" in llir


def by_strides(x, out, stride, out_stride, first, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (i >= first) & (i < n)
    tl.store(out + i * out_stride, tl.load(x + i * stride, mask=mask, other=7), mask=mask)


@pytest.mark.share(3)
@pytest.mark.parametrize("first", [0, 5])
@pytest.mark.parametrize("stride, out_stride", [(1, 3), (5, 1), (2, 2), (0, 7), (3, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int16, np.bool_])
def test_strides_that_are_arguments(compare, rng, dtype, stride, out_stride, first):
    """Vectors whose lanes are all on, some, and none; of elements at one address the last one stays."""
    n = 3 * BLOCK - 5
    x = (100 * rng.random(stride * (n - 1) + 1)).astype(dtype)
    out = np.full(out_stride * (n - 1) + 1, 77, dtype)
    compare(by_strides, [x, out, stride, out_stride, first, n], {"BLOCK": BLOCK}, grid=(4,))


def downwards_by_strides(x, out, last, stride, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + (last - i) * stride, tl.load(x + (last - i) * stride, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_strides_downwards(compare, rng, dtype):
    n = 2 * BLOCK - 3
    x = (100 * rng.random(3 * n)).astype(dtype)
    compare(downwards_by_strides, [x, np.zeros_like(x), n - 1, 3, n], {"BLOCK": BLOCK}, grid=(2,))


def permuted(x, index, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(index + i, mask=i < n, other=0)
    tl.store(out + at, tl.load(x + at, mask=i < n) + 1, mask=i < n)


@pytest.mark.share(2)
@pytest.mark.parametrize("n", [BLOCK, BLOCK - 7, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int16, np.int8])
def test_lanes_anywhere(compare, rng, dtype, n):
    x = rng.integers(0, 99, BLOCK).astype(dtype)
    compare(permuted, [x, rng.permutation(n).astype(np.int32), np.zeros(BLOCK, dtype), n], {"BLOCK": BLOCK})


def test_lanes_that_are_all_on_are_not_asked(lower_python, lower_module):
    """Where all lanes are on there is a store for each, and no branch."""
    x = np.zeros(BLOCK, np.float32)
    llir = lower_module(lower_python(by_strides, [x, x, 1, 3, 0, BLOCK], {"BLOCK": BLOCK})).llir
    function = llir[llir.index("define internal void @scatter_strided") :].partition("\n}")[0]
    all_on = function[function.index("all_on_then:") :].partition("\n  br ")[0]
    assert all_on.count("store float") == 16


def some_lanes(x, index, is_on, out, stride, BLOCK: tl.constexpr):
    """Lanes that lie anywhere, and at a stride, of which those that are off would be far from all arrays."""
    i = tl.arange(0, BLOCK)
    mask = tl.load(is_on + i) != 0
    anywhere = tl.load(x + tl.load(index + i), mask=mask, other=3)
    strided = tl.load(x + (i - (BLOCK - 1)) * stride, mask=mask & (i == BLOCK - 1), other=5)
    tl.store(out + i, anywhere + strided)


@pytest.mark.parametrize("on", ["none", "first", "last", "random"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_lanes_that_are_off_are_not_accessed(compare, rng, dtype, on):
    is_on = {"none": 0, "first": np.arange(BLOCK) == 0, "last": np.arange(BLOCK) == BLOCK - 1}.get(on)
    is_on = rng.random(BLOCK) < 0.3 if is_on is None else is_on * np.ones(BLOCK, bool)
    x, index = rng.integers(0, 99, BLOCK).astype(dtype), rng.permutation(BLOCK).astype(np.int64)
    index[~is_on] = 1 << 45
    arrays = [x, index, is_on.astype(np.int8), np.zeros(BLOCK, dtype)]
    compare(some_lanes, [*arrays, 1 << 25], {"BLOCK": BLOCK})


def test_lanes_that_are_on_are_gathered_without_a_loop(lower_python, lower_module):
    """They were stored one by one, and waited for to be read again as a vector."""
    x = np.zeros(BLOCK, np.float16)
    llir = lower_module(lower_python(by_strides, [x, x, 3, 1, 0, BLOCK], {"BLOCK": BLOCK})).llir
    function = re.search(r"define internal [^\n]* @gather_strided\.\w+\.some\(.*?\n}", llir, re.DOTALL).group()
    assert "on_body" not in function and function.count("load half") + function.count("load i16") == 16


def of_known_places(x, out, bits, FIRST: tl.constexpr, STEP: tl.constexpr, SHARERS: tl.constexpr, BLOCK: tl.constexpr):
    """Some lanes at steps, several of which share an element, in a pattern of bits."""
    i = tl.arange(0, BLOCK)
    mask = (bits >> (i % 16)) & 1 != 0
    tl.store(out + i, tl.load(x + FIRST + i // SHARERS * STEP, mask=mask, other=7))


@pytest.mark.parametrize("bits", [0, 1, 0x8000, 0x5555, 0xBEEF])
@pytest.mark.parametrize("step, sharers", [(2, 1), (3, 1), (5, 1), (1, 2), (1, 4), (2, 2), (3, 8)])
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.int8])
def test_lanes_that_are_off_and_share_elements(compare, rng, dtype, bits, step, sharers):
    """The array ends with the last element that is asked for, and begins with the first."""
    on = np.flatnonzero([bits >> lane % 16 & 1 for lane in range(BLOCK)])
    numbers = on // sharers * step if on.size else np.zeros(1, int)
    x = rng.integers(1, 99, numbers[-1] - numbers[0] + 1).astype(dtype)
    constexprs = {"FIRST": int(-numbers[0]), "STEP": step, "SHARERS": sharers, "BLOCK": BLOCK}
    compare(of_known_places, [x, np.zeros(BLOCK, dtype), bits], constexprs)


def test_vectors_are_loaded_under_masks(lower_python, lower_module):
    """Of a known stride, also where some lanes are off; more of the mask than the elements is shuffled."""
    x = np.zeros(3 * BLOCK, np.float16)
    constexprs = {"STEP": 2, "OUT_STEP": 1, "BLOCK": BLOCK}
    llir = lower_module(lower_python(of_every, [x, x, 1, 9], constexprs)).llir
    assert "gather" not in llir and "llvm.masked.load" in llir
