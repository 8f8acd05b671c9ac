"""What the runs with licences leave open, and what not."""

import numpy as np
import pytest

from tests.fuzz.case import Argument, Case, encode
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


@pytest.mark.parametrize("fuses", [True, False])
def test_a_product_may_be_fused_and_rounded(fuses):
    """`s - max(s)` need not be 0 for the largest."""
    source = (
        "@triton.jit\ndef kernel(x, out):\n    i = tl.arange(0, 4)\n    s = tl.load(x + i) * 0.2\n"
        "    tl.store(out + i, s - tl.max(s, 0))\n"
    )
    numbers = Argument("x", "float32", 4, (3.0, 1e4, 7.0, -5.0)), Argument("out", "float32", 4, "poison")
    case = Case(3, source, numbers, (1,), {"enable_fp_fusion": fuses})
    *_, out = expect(case, lowered(case), runs=30).bounds
    assert (out.low[1] < out.high[1]) == fuses


def test_what_a_rounded_product_lost_is_what_a_fused_one_has():
    """Not always a unit in the last place more or less, which may be rounded to another number than it is."""
    factor = np.float32(0.2)
    lost = float(factor) * 10001 - float(np.float32(10001) * factor)
    source = (
        "@triton.jit\ndef kernel(x, out):\n    i = tl.arange(0, 4)\n    s = tl.load(x + i) * 0.2\n"
        f"    tl.store(out + i, (s - tl.max(s, 0) == {lost}).to(tl.int32))\n"
    )
    numbers = Argument("x", "float32", 4, (3.0, 10001.0, 7.0, -5.0)), Argument("out", "int32", 4, "poison")
    case = Case(3, source, numbers, (1,), {})
    *_, out = expect(case, lowered(case), runs=30).bounds
    assert not out.is_determined[1]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_zeros_of_both_signs_differ(dtype):
    source = "@triton.jit\ndef kernel(x, out):\n    tl.store(out, tl.load(x))\n"
    case = Case(3, source, (Argument("x", dtype, 1, "zeros"), Argument("out", dtype, 1, "poison")), (1,), {})
    expected = expect(case, lowered(case))
    zero, minus_zero = (encode(np.array([number]), dtype) for number in (0.0, -0.0))
    assert expected.difference([zero, zero]) is None
    assert "got np.float64(-0.0), expected np.float64(0.0)" in expected.difference([zero, minus_zero])


def test_a_product_added_to_minus_zero_is_either_sign():
    """Whose terms are -0.0: their sum begins with 0.0, or with what it is added to."""
    source = (
        "@triton.jit\ndef kernel(x, y, z, out):\n    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]\n"
        "    tl.store(out + i, tl.dot(tl.load(x + i), tl.load(y + i), tl.load(z + i)))\n"
    )
    fills = {"x": ("float16", (0.0,)), "y": ("float16", (-1.0,)), "z": ("float32", (-0.0,))}
    fills["out"] = "float32", "poison"
    case = Case(3, source, tuple(Argument(n, dtype, 256, fill) for n, (dtype, fill) in fills.items()), (1,), {})
    *_, out = expect(case, lowered(case), runs=30).bounds
    assert np.signbit(out.low).all() and not np.signbit(out.high).any()


@pytest.mark.parametrize("added", ["dot + 0.3", "0.3 + dot", "dot + 3.0"])
def test_a_product_may_begin_with_what_it_is_added_to(added):
    """Each of its sums is rounded then, where that is no whole number."""
    source = (
        "@triton.jit\ndef kernel(x, out):\n    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]\n"
        f"    dot = tl.dot(tl.load(x + i), tl.load(x + i))\n    tl.store(out + i, {added})\n"
    )
    numbers = Argument("x", "float16", 256, "small"), Argument("out", "float32", 256, "poison")
    case = Case(3, source, numbers, (1,))
    *_, out = expect(case, lowered(case), runs=5).bounds
    assert (out.low < out.high).any() == ("0.3" in added)


def test_the_largest_of_many_equal_elements_may_be_less():
    """Where products are fused, and all of them are rounded down otherwise."""
    source = (
        "@triton.jit\ndef kernel(x, out):\n    a = tl.load(x + tl.arange(0, 64))\n"
        "    tl.store(out, tl.max(a * 3.0 - 1.0, 0))\n"
    )
    case = Case(5, source, (Argument("x", "float32", 64, (2 / 3,)), Argument("out", "float32", 1, "poison")), (1,))
    *_, out = expect(case, lowered(case), runs=30).bounds
    assert out.low < out.stored < out.high


def test_a_sum_on_the_way_may_be_infinite():
    """Of a dot whose end is finite: infinity times 0 is NaN."""
    source = (
        "@triton.jit\ndef kernel(x, y, out):\n    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]\n"
        "    dot = tl.dot(tl.load(x + i * 16 + j), tl.load(y + i * 16 + j), input_precision='ieee')\n"
        "    tl.store(out + i * 16 + j, dot * 0.0)\n"
    )
    row = (3e38, *[0.0] * 14, -3e38)
    numbers = (Argument("x", "float32", 256, row), Argument("y", "float32", 256, (2.0,)))
    case = Case(7, source, (*numbers, Argument("out", "float32", 256, "poison")), (1,))
    *_, out = expect(case, lowered(case), runs=100).bounds
    assert not out.is_determined.any()


@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3"])
def test_the_largest_operand_may_be_infinite(precision):
    """Where it is rounded to tf32; what it is multiplied by makes the product small."""
    source = (
        "@triton.jit\ndef kernel(x, y, out):\n    i, j = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]\n"
        "    x, y = tl.load(x + i * 16 + j), tl.load(y + i * 16 + j)\n"
        f"    tl.store(out + i * 16 + j, tl.dot(x, y, input_precision='{precision}'))\n"
    )
    numbers = (Argument("x", "float32", 256, (3.4028235e38, *[0.0] * 255)), Argument("y", "float32", 256, (2.0**-9,)))
    case = Case(7, source, (*numbers, Argument("out", "float32", 256, "poison")), (1,))
    *_, out = expect(case, lowered(case), runs=30).bounds
    assert out.is_determined[:16].all() == (precision != "tf32")
    assert out.is_determined[16:].all()


def test_which_of_two_zeros_stays_is_not_said():
    source = "@triton.jit\ndef kernel(x, out):\n    i = tl.arange(0, 2)\n    tl.store(out + i // 2, tl.load(x + i))\n"
    case = Case(9, source, (Argument("x", "float32", 2, (0.0, -0.0)), Argument("out", "float32", 1, "poison")), (1,))
    *_, out = expect(case, lowered(case), runs=20).bounds
    assert not out.is_determined.any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("numbers", "is_exact"), [((1.0, 2.0, 3.0, 4.0), True), ((0.1, 0.7, 1.3, -5.9), False)])
def test_the_order_of_rounded_sums_by_atomics_is_open(dtype, numbers, is_exact):
    """Of each element, though all runs but a few of many elements take them in one of two orders."""
    source = "@triton.jit\ndef kernel(x, io):\n    tl.atomic_add(io, tl.load(x + tl.program_id(0)))\n"
    arguments = Argument("x", dtype, 4, numbers), Argument("io", dtype, 1, (0.3,) if not is_exact else (1.0,))
    case = Case(3, source, arguments, (4,), {})
    *_, io = expect(case, lowered(case), runs=5).bounds
    assert (io.low[0] == io.high[0]) == is_exact


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("number", "is_exact"), [(3.0, True), (0.1, False)])
def test_the_order_of_rounded_sums_by_descriptors_is_open(dtype, number, is_exact):
    """Of each element of a block that programs add to. That these add the same is not looked at."""
    source = (
        "@triton.jit\ndef kernel(x, io):\n    d = tl.make_tensor_descriptor(io, [12], [1], [16])\n"
        "    d.atomic_add([0], tl.full((16,), tl.load(x + tl.program_id(0)), io.dtype.element_ty))\n"
    )
    arguments = Argument("x", dtype, 4, (number,)), Argument("io", dtype, 16, (1.0,))
    case = Case(3, source, arguments, (4,))
    *_, io = expect(case, lowered(case), runs=5).bounds
    assert (io.low[:12] == io.high[:12]).all() == is_exact
    assert (io.low[12:] == io.high[12:]).all()


def test_a_sum_by_one_atomic_is_as_it_is():
    source = "@triton.jit\ndef kernel(x, io):\n    tl.atomic_add(io, tl.load(x))\n"
    arguments = Argument("x", "float32", 1, (0.1,)), Argument("io", "float32", 1, (0.7,))
    case = Case(3, source, arguments, (1,), {})
    *_, io = expect(case, lowered(case), runs=5).bounds
    assert io.low[0] == io.high[0]


def test_each_row_is_summed_in_an_order_of_its_own():
    """So that sums of equal rows may differ."""
    source = (
        "@triton.jit\ndef kernel(x, out):\n    i = tl.arange(0, 2)[:, None] * 0 + tl.arange(0, 8)[None, :]\n"
        "    s = tl.sum(tl.load(x + i), 1)\n    tl.store(out, (tl.max(s, 0) == tl.min(s, 0)).to(tl.int32))\n"
    )
    numbers = (0.1, 0.7, 1.3, -5.9, 1e3, 3.3, -0.2, 0.05)
    case = Case(3, source, (Argument("x", "float32", 8, numbers), Argument("out", "int32", 1, "poison")), (1,), {})
    *_, out = expect(case, lowered(case), runs=30).bounds
    assert not out.is_determined.any()


def test_what_a_type_without_nan_has_in_its_place_has_any_sign():
    source = "@triton.jit\ndef kernel(x, out):\n    tl.store(out, tl.load(x).to(tl.float32).to(tl.float8e4b15))\n"
    numbers = Argument("x", "float8e5", 1, (0xFF,)), Argument("out", "float8e4b15", 1, "poison")
    case = Case(3, source, numbers, (1,), {})
    *_, out = expect(case, lowered(case), runs=30).bounds
    assert (out.low, out.high) == (-1.75, 1.75)
