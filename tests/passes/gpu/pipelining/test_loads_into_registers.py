"""Which loads of loops without dots are done one iteration ahead, into registers."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

X = aligned(np.zeros(1 << 14, np.float32))
INTEGERS = aligned(np.zeros(1 << 14, np.int32))
INDEX = aligned(np.zeros(1 << 14, np.int32))


@pytest.fixture(autouse=True)
def one_iteration(monkeypatch):
    """Two are counted in test_alternate_registers.py, versions in ../test_version_loops.py."""
    monkeypatch.setenv("DEUTERON_DISABLE_PASSES", "alternate-registers,version-loops")


@deuteron.jit
def variant(x, y, out, index, n, BLOCK: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.range(0, n, BLOCK, loop_unroll_factor=1):
        v = tl.load(x + k + i, mask=k + i < n, other=1.0)
        scale = tl.load(y + k)
        if CASE == "index":
            row = tl.load(index + k)
            v += tl.load(y + row + i)
        if CASE == "volatile":
            v += tl.load(y + i, volatile=True)
        if CASE == "branch" and k > 5:
            v += tl.load(y + i)
        acc += v * scale
        if CASE == "elsewhere":
            tl.store(out + k + i, acc)
        if CASE == "in place":
            tl.store(x + k + i, acc)
        if CASE == "next block":
            tl.store(x + k + 1 + i, acc)
        if CASE == "acquire":
            tl.atomic_add(index, 1)
        if CASE == "add":
            tl.atomic_add(out + i, acc, sem="relaxed")
    tl.store(out + i, acc)


def loads(kernel, *args, **given):
    """How many loads there are before the loop, and in it."""
    text = generic_asm(compile_for("cuda:90", kernel, *args, **given), "ttgir")
    before, loop = text.split('"scf.for"')
    return before.count('"tt.load"'), loop.split('"tt.store"(%out')[0].count('"tt.load"')


@pytest.mark.parametrize(
    ("case", "before", "inside"),
    [
        ("plain", 2, 2),
        ("index", 5, 4),  # the row of the first iteration, and the numbers of the first two
        ("volatile", 0, 3),
        ("branch", 2, 3),
        ("elsewhere", 2, 2),
        ("in place", 2, 2),
        (
            "next block",
            0,
            2,
        ),  # the next iteration loads the last element, also if `y` is `x`
        ("acquire", 0, 2),
        ("add", 2, 2),
    ],
)
def test_what_is_loaded_ahead(case, before, inside):
    assert loads(variant, X, X[8:], X[64:], INDEX, 1000, BLOCK=256, CASE=case) == (before, inside)


@deuteron.jit
def states(x, out, n, stride, BLOCK: tl.constexpr, SHIFT: tl.constexpr):
    i = tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), tl.float32)
    for k in range(n):
        tl.store(out + k * stride + i, state)
        state = state * 0.5 + tl.load(x + k * stride + i + SHIFT)


@pytest.mark.parametrize(("shift", "before", "inside"), [(0, 1, 1), (1, 0, 1)])
def test_what_was_just_stored_is_not_meant_to_be_loaded(shift, before, inside):
    """If both are one array; its next elements may be."""
    assert loads(states, X, X[64:], 5, 256, BLOCK=256, SHIFT=shift) == (before, inside)


def test_stages_are_of_copies():
    """Which are as many as a loop says itself; of one that says so there are none."""
    assert loads(variant, X, X, X, INDEX, 1000, BLOCK=256, CASE="plain", num_stages=1) == (2, 2)
    assert loads(with_stages, X, X, 1000, BLOCK=256) == (0, 1)


@deuteron.jit
def with_stages(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.range(n, num_stages=1):
        acc += tl.load(x + k * BLOCK + i)
    tl.store(out + i, acc)


def test_what_would_not_fit_stays():
    """Of 255 registers a thread holds 128 for the sum."""
    assert loads(variant, X, X, X, INDEX, 1000, BLOCK=4096, CASE="plain", num_warps=1) == (0, 2)
    assert loads(variant, X, X, X, INDEX, 1000, BLOCK=4096, CASE="plain", num_warps=4) == (2, 2)


@deuteron.jit
def taps(x, out, C, H, W, BLOCK: tl.constexpr, TAPS: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h, w = o // W, o % W
    acc = tl.zeros((BLOCK,), tl.float32)
    for c in range(C):
        for i in tl.static_range(TAPS):
            here = (h + i - 1 >= 0) & (h + i - 1 < H) & (w + i < W)
            acc += tl.load(x + (c * H + h + i - 1) * W + w + i, mask=here, other=0.0)
    tl.store(out + o, acc)


@pytest.mark.parametrize(("num_taps", "before", "inside"), [(3, 3, 3), (5, 0, 5)])
def test_many_masks_that_stay(num_taps, before, inside):
    """Of four pixels of a thread each; the first tap's are a vector only where W is divisible."""
    assert loads(taps, X, X, 5, 31, 33, BLOCK=512, TAPS=num_taps, num_warps=4) == (before, inside)


@deuteron.jit
def channels(x, out, C, W, BLOCK: tl.constexpr, TAPS: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for c in range(0, C, BLOCK):
        for i in tl.static_range(TAPS):
            acc += tl.load(x + (i * W + o) * C + c, mask=(o + i < W) & (o < C - c), other=0.0)
    tl.store(out + o, acc)


@pytest.mark.parametrize(("num_taps", "before", "inside"), [(3, 3, 3), (5, 0, 5)])
def test_many_masks_that_change(num_taps, before, inside):
    """Each tap has its own."""
    assert loads(channels, X, X, 5, 31, BLOCK=512, TAPS=num_taps, num_warps=4) == (before, inside)


@deuteron.jit
def scaled(x, scale, out, n, size, BLOCK: tl.constexpr, CASE: tl.constexpr):
    r = tl.arange(0, BLOCK)
    for i in range(0, n, BLOCK):
        at = i + r
        if CASE == "quotients":
            at = at // size
        if CASE == "quotients of a number":
            at = at // 64
        if CASE == "a quotient":
            at = i // size + r
        v = tl.load(x + i + r, mask=i + r < n) * tl.load(scale + at, mask=i + r < n)
        tl.store(out + i + r, v, mask=i + r < n)


@pytest.mark.parametrize(
    ("case", "before", "inside"),
    [("plain", 2, 2), ("quotients", 0, 2), ("quotients of a number", 2, 2), ("a quotient", 2, 2)],
)
def test_single_words_at_quotients(case, before, inside):
    assert loads(scaled, X, X, X, 48, 17, BLOCK=512, CASE=case, num_warps=4) == (before, inside)


@deuteron.jit
def paged(table, at, out, n, page, BLOCK: tl.constexpr):
    for i in range(0, n, BLOCK):
        r = i + tl.arange(0, BLOCK)
        places = tl.load(at + r, mask=r < n, other=0)
        tl.store(out + r, tl.load(table + places // page) * page + places % page, mask=r < n)


def test_single_words_at_quotients_without_a_mask():
    """As in vLLM's mapping of slots; asking for the alignment of a mask that is not there was an InternalError."""
    assert loads(paged, INTEGERS, INTEGERS, INTEGERS, 48, 17, BLOCK=512, num_warps=4)[1] == 2


@deuteron.jit
def with_dot(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in tl.range(n, loop_unroll_factor=1):
        acc += tl.load(x + k * BLOCK + i)
    square = tl.broadcast_to(acc[:, None], (BLOCK, BLOCK))
    tl.store(out + i[:, None] * BLOCK + i[None, :], tl.dot(square, square))


@deuteron.jit
def rows(x, columns, starts, out, n, FIRST: tl.constexpr):
    r = tl.arange(0, 4)
    i = tl.arange(0, 128)
    program = tl.program_id(0)
    first = tl.load(starts + program) if FIRST == "loaded" else program * 8
    acc = tl.zeros([128], tl.float32)
    for k in range(first, n, 4):
        column = tl.load(columns + k + r, mask=k + r < n, other=0)
        value = tl.load(x + column[:, None] * 128 + i[None, :], mask=(k + r < n)[:, None], other=0.0)
        acc += tl.sum(value, 0)
    tl.store(out + program * 128 + i, acc)


@pytest.mark.parametrize(("first", "before", "inside"), [("loaded", 1, 2), ("computed", 3, 2)])
def test_rows_of_sparse_matrices(first, before, inside):
    """They are short, and their threads exchange sums."""
    assert loads(rows, X, INDEX, INDEX, X, 1000, FIRST=first, num_warps=1) == (before, inside)


def test_kernels_with_dots_stay_as_they_are():
    assert loads(with_dot, X, X, 4, BLOCK=32) == (0, 1)
