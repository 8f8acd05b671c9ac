"""What is added to a product: one tile is exchanged, in as few bytes as it has."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl


@deuteron.jit
def added(a, b, c, out, SCALE: tl.constexpr, STEPS: tl.constexpr):
    """A product and what is added to it, in 16 bits: in a loop of several steps it is no operand of the dot."""
    i, j = tl.arange(0, 64), tl.arange(0, 64)
    at = i[:, None] * 64 + j[None, :]
    total = tl.zeros((64, 64), tl.float32)
    for _ in range(STEPS):
        total += tl.dot(tl.load(a + at), tl.load(b + at))
    total = total * SCALE + tl.load(c + at).to(tl.float32)
    tl.store(out + at, total.to(tl.float16))


@pytest.mark.parametrize(("scale", "converted"), [(2, ["xf32,"]), (1, ["xf16,"])])
def test_what_is_added_to_a_product(rng, scale, converted):
    """The sums go to where the rest is and the result is stored; an accumulator that is loaded, in its 16 bits."""
    a, b, c = (aligned(rng.integers(-3, 4, (64, 64)).astype(np.float16)) for _ in range(3))
    out = aligned(np.zeros((64, 64), np.float16))
    kernel = emulate(added, a, b, c, out, SCALE=scale, STEPS=1)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b * scale + c)
    lines = [line for line in generic_asm(kernel, "ttgir").splitlines() if '"ttg.convert_layout"' in line]
    assert [line.split("(tensor<64x64")[1].split(" ")[0] for line in lines] == converted
