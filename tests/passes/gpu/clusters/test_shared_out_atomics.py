"""Atomics on tiles, shared out over the CTAs of a cluster: each is done once, and its result is where it is used."""

from __future__ import annotations

import re

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl
from deuteron.errors import UsageError


@deuteron.jit
def count(x, out, BLOCK: tl.constexpr, GIVES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    before = tl.atomic_add(out + i // 2, tl.load(x + i))
    if GIVES:
        tl.store(x + BLOCK + i, before)


@pytest.mark.parametrize("gives", [False, True])
@pytest.mark.parametrize("num_ctas", [2, 4])
def test_atomics_of_tiles_are_done_once(num_ctas, gives, rng):
    x, out = rng.integers(1, 9, 128).astype(np.float32), np.zeros(32, np.float32)
    values = x[:64].reshape(32, 2).copy()
    emulate(count, x, out, BLOCK=64, GIVES=gives, num_ctas=num_ctas)
    np.testing.assert_array_equal(out, values.sum(1))
    if gives:
        before = x[64:].reshape(32, 2)
        first = before.argmin(1)
        np.testing.assert_array_equal(before.min(1), 0)
        np.testing.assert_array_equal(before.max(1), values[np.arange(32), first])


@deuteron.jit
def count_and_choose(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, tl.where(v > 4, tl.atomic_add(x + i, 1), -v))


@pytest.mark.parametrize("num_ctas", [2, 4])
def test_what_is_computed_of_an_atomics_result(num_ctas, rng):
    x, out = rng.integers(1, 9, 16).astype(np.int32), np.zeros(16, np.int32)
    before = x.copy()
    emulate(count_and_choose, x, out, BLOCK=16, num_ctas=num_ctas)
    np.testing.assert_array_equal(out, np.where(before > 4, before, -before))
    np.testing.assert_array_equal(x, before + 1)


@deuteron.jit
def old_values(x, out, n, CASE: tl.constexpr, BLOCK: tl.constexpr):
    i, j = tl.arange(0, BLOCK), tl.arange(0, 8)
    square, old = i[:, None] * 8 + j[None, :], tl.zeros((BLOCK,), tl.int32)
    if CASE == "made in a loop":
        for k in range(n):
            old += tl.atomic_add(x + i, k + 1)
    if CASE == "read in the next iteration":
        for k in range(n):
            tl.store(out + k * BLOCK + i, old)
            old = tl.atomic_add(x + i, k + 1)
    if CASE == "read in a loop":
        old = tl.atomic_add(x + i, 1)
        for k in range(n):
            old = old * 2 + k
    if CASE == "made in a branch":
        old = tl.full((BLOCK,), n, tl.int32)
        if n > 2:
            old += tl.atomic_add(x + i, n) * 2
    if CASE == "read in a branch":
        old = tl.atomic_max(x + i, n)
        if n > 2:
            old = old * n
    if CASE == "of a comparison":
        old = tl.where(tl.atomic_cas(x + i, n, 9) == n, 1.5, 2.0).to(tl.float16).to(tl.int32)
    if CASE == "an address":
        tl.atomic_add(out + tl.atomic_xchg(x + i, n), 1)
    elif CASE == "read in the next iteration":
        tl.store(out + n * BLOCK + i, old)
    elif CASE == "summed":
        tl.store(out + i, tl.sum(tl.atomic_add(x + square, n), axis=1))
    elif CASE == "transposed":
        tl.store(out + j[:, None] * BLOCK + i[None, :], tl.trans(tl.atomic_add(x + square, n)))
    elif CASE == "stored as it is and reversed":
        old = tl.atomic_add(x + i, n)
        tl.store(out + i, old)
        tl.store(out + 2 * BLOCK - 1 - i, old + 1)
    else:
        tl.store(out + i, old)


@pytest.mark.share(2)
@pytest.mark.parametrize("num_ctas", [2, 4])
@pytest.mark.parametrize(
    "case",
    [
        "made in a loop",
        "read in the next iteration",
        "read in a loop",
        "made in a branch",
        "read in a branch",
        "of a comparison",
        "an address",
        "summed",
        "transposed",
        "stored as it is and reversed",
    ],
)
def test_an_atomics_result_wherever_it_is_used(case, num_ctas, rng):
    """The tile that the whole program would get is gone, and so is all that was computed of it."""
    x, out = rng.integers(0, 8, 128).astype(np.int32), np.zeros(128, np.int32)
    alone = x.copy(), out.copy()
    emulate(old_values, *alone, 3, CASE=case, BLOCK=16)
    compiled = emulate(old_values, x, out, 3, CASE=case, BLOCK=16, num_ctas=num_ctas)
    assert not re.search("tensor<16x(8x)?i32", generic_asm(compiled, "ttgir"))
    np.testing.assert_array_equal(x, alone[0])
    np.testing.assert_array_equal(out, alone[1])
    assert out.any()


@deuteron.jit
def needed_by_all(x, out, CASE: tl.constexpr):
    i = tl.arange(0, 16)
    if CASE == "the next iteration":
        old = tl.zeros((16,), tl.int32)
        for k in range(3):
            tl.store(out + k, tl.sum(old))
            old = tl.atomic_add(x + i, k)
    else:
        old = tl.atomic_add(x + i, 1)
    if CASE == "a sum":
        tl.store(out, tl.sum(old))
    if CASE == "a condition" and tl.max(old) > 3:
        tl.store(out + i, i)
    if CASE == "both axes":
        square = tl.atomic_add(x + i[:, None] * 16 + i[None, :], 1)
        tl.store(out + i, tl.sum(square, 0) + tl.sum(square, 1))


@pytest.mark.parametrize("case", ["the next iteration", "a sum", "a condition", "both axes"])
def test_a_result_that_no_block_has_is_refused(case):
    x = np.zeros(256, np.int32)
    with pytest.raises(
        UsageError, match="num_ctas = 2: what an atomic gives is needed (as a whole|along several axes)"
    ):
        compile_for("cuda:90", needed_by_all, x, x, CASE=case, num_ctas=2)
