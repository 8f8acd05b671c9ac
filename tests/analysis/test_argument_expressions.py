"""Scalars as expressions of the kernel's arguments."""

from __future__ import annotations

import pytest

import deuteron
import deuteron.language as tl
from deuteron.analysis.addresses.argument_expressions import expression_of
from deuteron.frontend import lower_function
from deuteron.ir.tt.descriptor import MakeTensorDescriptorOp

P, N, M = ("argument", 0, 64), ("argument", 1, 32), ("argument", 2, 32)


def found(kernel) -> list:
    module = lower_function(kernel, {"p": "*fp16", "n": "i32", "m": "i32"}, {})
    (made,) = (op for op in module.walk() if isinstance(op, MakeTensorDescriptorOp))
    return [expression_of(value) for value in made.operands]


@deuteron.jit
def plain(p, n, m):
    tl.make_tensor_descriptor(p, [n, 64], [m, 1], [16, 64])


@deuteron.jit
def computed(p, n, m):
    tl.make_tensor_descriptor(p + n * 8, [n - m, m + 1], [m * 16, 1], [16, 64])


@deuteron.jit
def unknown(p, n, m):
    pid = tl.program_id(0)
    tl.make_tensor_descriptor(p + pid, [n // 2, m], [m, 1], [16, 64])


def test_arguments_and_constants():
    assert found(plain) == [P, N, ("constant", 64), M, ("constant", 1)]


def test_sums_and_products():
    base, rows, columns, stride, _ = found(computed)
    assert base == ("add", 64, P, ("mul", 64, ("mul", 32, N, ("constant", 8)), ("constant", 2)))
    assert rows == ("sub", 32, N, M)
    assert columns == ("add", 32, M, ("constant", 1))
    assert stride == ("mul", 32, M, ("constant", 16))


def test_what_depends_on_more():
    base, rows, columns, *_ = found(unknown)
    assert (base, rows) == (None, None)
    assert columns == M


@pytest.mark.parametrize("type", ["i64", "i32"])
def test_widths(type: str):
    module = lower_function(plain, {"p": "*fp16", "n": type, "m": type}, {})
    (made,) = (op for op in module.walk() if isinstance(op, MakeTensorDescriptorOp))
    most = ("min", 64, ("argument", 1, 64), ("constant", 2**31 - 1))
    expected = ("argument", 1, 32) if type == "i32" else ("add", 32, most, ("constant", 0))
    assert expression_of(made.shape[0]) == expected
