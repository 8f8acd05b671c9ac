"""Programs whose tile ends before the array have no masks, and all elements are what they were."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

BLOCK = 256


@deuteron.jit
def kernel(x, y, o, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    if KIND == "offset":
        i = i + 1
    a = tl.load(x + i, mask=ok, other=-1.0)
    if KIND == "both":
        b = tl.load(y + i, mask=ok & (a > 0.0), other=2.0)
    elif KIND == "loop":
        b = a
        for _k in range(n):
            b = b * a
    else:
        b = tl.load(y + i, mask=ok)
    if KIND == "sums":
        tl.store(o + tl.program_id(0), tl.sum(tl.where(ok, a * b, 0.0)))
    elif KIND == "cosines":
        for _k in tl.static_range(40):
            b = tl.cos(a + b)
        tl.store(o + i, b, mask=ok)
    else:
        tl.store(o + i, a * b, mask=ok)


def _compiled(kind, n, target="cuda:90", num_warps=2):
    x = aligned(np.zeros(n, np.float32))
    return compile_for(target, kernel, x, x, x, n, KIND=kind, BLOCK=BLOCK, num_warps=num_warps)


@pytest.mark.parametrize(
    ("kind", "n", "is_split"),
    [
        ("", 1001, True),
        ("both", 1001, True),
        ("sums", 1001, True),
        ("", 1008, False),  # a mask that is the same for whole vectors
        ("offset", 1001, False),  # pointers which are not aligned
        ("loop", 1001, False),
        ("cosines", 1001, False),  # too much for each element, which would be there twice
    ],
)
def test_what_a_mask_narrows_is_there_without_it(kind, n, is_split):
    compiled = _compiled(kind, n)
    assert ("scf.if" in generic_asm(compiled, "ttir")) == is_split
    assert bool(instructions_with(compiled, "ld.global.v4.b32")) == (is_split or n == 1008)


@pytest.mark.parametrize(("num_warps", "is_split"), [(1, True), (2, False)])
def test_eight_masks_are_more_than_there_are_predicates(num_warps, is_split):
    assert ("scf.if" in generic_asm(_compiled("offset", 1008, num_warps=num_warps), "ttir")) == is_split


def test_a_cpu_looks_for_itself_where_a_mask_is_on():
    assert "scf.if" not in generic_asm(_compiled("", 1001, "cpu"), "ttir")


@pytest.mark.parametrize("kind", ["", "both", "sums"])
@pytest.mark.parametrize("n", [1, 255, 257, 511, 513, 1001])
def test_every_element_is_what_it_was(kind, n, rng):
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    o = aligned(np.full(n + 5, np.nan, np.float32))
    programs = -(-n // BLOCK)
    emulate(kernel, aligned(x), aligned(y), o, n, grid=(programs,), KIND=kind, BLOCK=BLOCK, num_warps=1)
    second = np.where(x > 0, y, 2.0) if kind == "both" else y
    products = x.astype(float) * second
    if kind == "sums":
        products = np.add.reduceat(products, range(0, n, BLOCK))
    np.testing.assert_allclose(o[: len(products)], products, rtol=1e-4, atol=1e-4)
    assert np.isnan(o[len(products) :]).all()


@deuteron.jit
def at_the_end(o, start, n, BLOCK: tl.constexpr):
    """A tile whose last numbers would overflow is no whole one."""
    i = start + tl.arange(0, BLOCK)
    j = tl.arange(0, BLOCK)
    tl.store(o + j, j.to(tl.float32), mask=i < n)


@pytest.mark.parametrize("n", [2**31 - 1, 2**31 - 3, 2**31 - 129, -(2**31), -(2**31) + 7, 5])
@pytest.mark.parametrize("start", [2**31 - 130, 2**31 - 100, 2**31 - 1, -(2**31), -120])
def test_numbers_at_their_ends(start, n):
    o = aligned(np.full(128, np.nan, np.float32))
    emulate(at_the_end, o, start, n, BLOCK=128, num_warps=1)
    index = (np.arange(128) + start).astype(np.int64).astype(np.int32)
    np.testing.assert_array_equal(o, np.where(index < n, np.arange(128), np.nan).astype(np.float32))
