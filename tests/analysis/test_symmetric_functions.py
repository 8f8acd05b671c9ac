"""Which functions of reductions give the same for both orders of their operands."""

from __future__ import annotations

import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.symmetric_functions import is_symmetric
from deuteron.frontend import lower_function
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.reduce import ReduceOp


@triton.jit
def total(a, i, b, j):
    return a + b, i ^ j


@triton.jit
def composed(a, i, b, j):
    return tl.minimum(a + b + a * b, 7), (i * 3) & (j * 3)


@triton.jit
def crossed(a, i, b, j):
    return a * j.to(tl.float32) + b * i.to(tl.float32), i + j


@triton.jit
def larger(a, i, b, j):
    return tl.where(a > b, a, b), i + j


@triton.jit
def index_of_larger(a, i, b, j):
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def difference(a, i, b, j):
    return a + b, i - j


@triton.jit
def first_twice(a, i, b, j):
    return a * a + b, i + j


@triton.jit
def weighted(a, i, b, j):
    return a + b, i + 2 * j


@triton.jit
def with_branch(a, i, b, j):
    if i > j:
        a += b
    else:
        a = b + a
    return a, i + j


@triton.jit
def kernel(x_ptr, out_ptr, combine: tl.constexpr):
    i = tl.arange(0, 64)
    a, b = tl.reduce((tl.load(x_ptr + i), i), 0, combine)
    tl.store(out_ptr, a + b)


@pytest.mark.parametrize(
    ("combine", "expected"),
    [
        (total, True),
        (composed, True),
        (crossed, True),
        (larger, False),
        (index_of_larger, False),
        (difference, False),
        (first_twice, False),
        (weighted, False),
        (with_branch, False),
    ],
)
def test_symmetric(combine, expected):
    module = lower_function(kernel, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"combine": combine})
    (reduction,) = nested_ops(module, ReduceOp)
    assert is_symmetric(reduction.combine.block) == expected
