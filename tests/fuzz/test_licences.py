"""What the runs with licences leave open, and what not."""

import pytest

from tests.fuzz.case import Argument, Case
from tests.fuzz.oracle import expect
from tests.fuzz.validity import lowered


@pytest.mark.parametrize("fuses", [True, False])
def test_a_fused_product_does_not_overflow(fuses):
    """1e30 * 1e30 - inf is NaN where the product is rounded to infinity, and -inf where it is fused."""
    source = "@triton.jit\ndef kernel(x, y, out):\n    a = tl.load(x)\n    tl.store(out, a * a + tl.load(y))\n"
    numbers = (Argument("x", "float32", 1, (1e30,)), Argument("y", "float32", 1, (-float("inf"),)))
    case = Case(3, source, (*numbers, Argument("out", "float32", 1, "poison")), (1,), {"enable_fp_fusion": fuses})
    *_, out = expect(case, lowered(case), runs=20).bounds
    assert out.is_determined.all() == (not fuses)
