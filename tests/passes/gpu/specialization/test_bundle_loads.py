"""Which loads share a ring: not those that are kept while a loop goes around and around it, or nobody would go on."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

pytestmark = pytest.mark.usefixtures("by_pointers")


@deuteron.jit
def kept(a, b, out, n, rounds, N: tl.constexpr, CASE: tl.constexpr):
    """`x` is read before a loop, or a branch with one, that reads `y`, and after it."""
    i = tl.arange(0, N)
    square = i[:, None] * N + i[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for r in tl.range(rounds, warp_specialize=True):
        x = tl.load(a + r * N * N + square)
        acc = tl.dot(x, x, acc)
        if CASE == "loop" or rounds > 1:
            for k in range(n):
                y = tl.load(b + k * N * N + square)
                acc = tl.dot(y, y, acc)
        if CASE != "before":
            acc = tl.dot(x, x, acc)
    tl.store(out + square, acc)


@pytest.mark.parametrize(("case", "rings"), [("loop", 2), ("branch", 2), ("before", 1)])
def test_what_is_kept_over_a_loop_has_a_ring_of_its_own(rng, case, rings):
    a, b = (aligned(rng.integers(-1, 2, (8, 64, 64)).astype(np.float16)) for _ in range(2))
    out = aligned(np.full((64, 64), np.nan, np.float32))
    kernel = compile_for("cuda:90", kept, a, b, out, 7, 2, N=64, CASE=case, num_stages=2)
    text = generic_asm(kernel, "ttgir")
    assert '"ttg.warp_specialize"' in text
    assert len(re.findall(r'"ttg.local_alloc"\(\).*x64x64xf16', text)) == rings
    for n, rounds in ((7, 2), (3, 3), (0, 2), (1, 1)):
        out.fill(np.nan)
        emulate_compiled(kernel, a, b, out, n, rounds, asynchronous="late")
        squares = [np.matmul(tiles.astype(np.float64), tiles) for tiles in (a, b)]
        inner = squares[1][:n].sum(0) * (case == "loop" or rounds > 1)
        expected = sum((1 + (case != "before")) * square + inner for square in squares[0][:rounds])
        np.testing.assert_array_equal(out, expected)
