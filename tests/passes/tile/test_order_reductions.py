"""Reductions become scans where their function tells one order of its operands from the other."""

from __future__ import annotations

import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.frontend import lower_function
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.language.reductions import _larger_any, _larger_left
from deuteron.passes import run_passes
from deuteron.passes.tile.order_reductions import OrderReductions


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def mean(m0, d0, n0, m1, d1, n1):
    """Welford's: alike in both orders but for rounding."""
    delta, count = m1 - m0, n0 + n1
    part = tl.where(count == 0, 0.0, n1 / count)
    return m0 + delta * part, d0 + d1 + delta * delta * n0 * part, count


@triton.jit
def mean_of_counts(m0, d0, n0, m1, d1, n1):
    """The same, but for counts below zero."""
    delta, count = m1 - m0, n0 + n1
    part = tl.where(count > 0, n1 / tl.maximum(count, 1.0), 0.0)
    return m0 + delta * part, d0 + d1 + delta * delta * n0 * part, count


@triton.jit
def mean_of_differences(m0, d0, n0, m1, d1, n1):
    """Of two counts it makes one below zero."""
    return mean_of_counts(m0, d0, n0 - 300.0, m1, d1, n1 - 300.0)


@triton.jit
def maximum(a, b):
    """With a question for the type, whose tile of one element nothing uses."""
    mask = a > b
    if (a + tl.zeros((1,), tl.int1)).dtype.is_floating():
        mask |= a != a
    return tl.where(mask, a, b)


@triton.jit
def left(a, b):
    return a


@triton.jit
def subtract(a, b):
    return a - b


@triton.jit
def segmented(flag, value, other_flag, other):
    return flag | other_flag, tl.where(other_flag != 0, other, value + other)


@triton.jit
def last_large(a, b):
    """One order is like the other where no number is large."""
    return tl.where(b > 500, b, tl.where(a > 500, a, tl.maximum(a, b)))


@triton.jit
def last_of_thousands(a, b):
    """None of its numbers is large, and what it tells apart is."""
    return tl.where(b / 16 / 16 / 16 >= 1, b, a + b)


@triton.jit
def branched(a, b):
    if a > b:
        b = a
    return b


@triton.jit
def kernel(p, combine: tl.constexpr, count: tl.constexpr):
    x = tl.load(p + tl.arange(0, 64))
    if count == 1:
        tl.reduce(x, 0, combine)
    elif count == 2:
        tl.reduce((x.to(tl.int32), x), 0, combine)
    else:
        tl.reduce((x, x, x), 0, combine)


@pytest.mark.parametrize(
    ("combine", "count", "is_ordered"),
    [
        (add, 1, False),
        (mean, 3, False),
        (branched, 1, False),
        (maximum, 1, False),
        (_larger_any, 2, False),
        (_larger_left, 2, False),
        (left, 1, True),
        (subtract, 1, True),
        (segmented, 2, True),
        (last_large, 1, True),
        (last_of_thousands, 1, True),
    ],
)
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "i32"])
def test_order(combine, count, is_ordered, dtype):
    if dtype != "fp32" and combine is mean:
        pytest.skip("divides")
    module = lower_function(kernel, {"p": f"*{dtype}"}, {"combine": combine, "count": count}, {})
    run_passes(module, [OrderReductions()])
    assert sum(isinstance(op, ScanOp) for op in module.walk()) == is_ordered
    assert sum(isinstance(op, ReduceOp) for op in module.walk()) == 1


@triton.jit
def counting_kernel(p, n, combine: tl.constexpr, way: tl.constexpr):
    r = tl.arange(0, 64)
    x = tl.load(p + r)
    if way == "mask":
        count = (r < n).to(tl.float32)
    elif way == "loop":
        count = tl.zeros([64], tl.float32)
        for i in range(n):
            count = tl.where(r < i, count + 1.0, count)
    elif way == "falling":
        count = tl.zeros([64], tl.float32)
        for _ in range(n):
            count = count - 1.0
    elif way == "quotient":
        count = tl.zeros([64], tl.float32) + tl.full([64], 1.0, tl.float32) / -0.0
    elif way == "scalar":
        count = tl.zeros([64], tl.float32) + n
    else:
        count = x
    tl.reduce((x, x, count), 0, combine)


@pytest.mark.parametrize(
    ("combine", "way", "is_ordered"),
    [
        (mean_of_counts, "mask", False),
        (mean_of_counts, "loop", False),
        (mean_of_counts, "falling", True),
        (mean_of_counts, "quotient", True),
        (mean_of_counts, "scalar", True),
        (mean_of_counts, "loaded", True),
        (mean_of_differences, "mask", True),
    ],
)
def test_order_of_counts(combine, way, is_ordered):
    module = lower_function(counting_kernel, {"p": "*fp32", "n": "i32"}, {"combine": combine, "way": way}, {})
    run_passes(module, [OrderReductions()])
    assert sum(isinstance(op, ScanOp) for op in module.walk()) == is_ordered
