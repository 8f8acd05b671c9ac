"""Whether no two elements of a tile of addresses are one: asked first of all, when nothing is known of it yet."""

import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.overlap import is_injective
from deuteron.analysis.tile_polynomials import TilePolynomials
from deuteron.frontend import lower_function
from deuteron.ir.tt.memory import StoreOp


@triton.jit
def stores(out_ptr, stride, KIND: tl.constexpr):
    i, j = tl.arange(0, 32), tl.arange(0, 16)
    if KIND == "line":
        tl.store(out_ptr + 2 * i, 0.0)
    elif KIND == "backwards":
        tl.store(out_ptr + 31 - i, 0.0)
    elif KIND == "rows":
        tl.store(out_ptr + i[:, None] * 16 + j[None, :], 0.0)
    elif KIND == "rows that overlap":
        tl.store(out_ptr + i[:, None] * 15 + j[None, :], 0.0)
    elif KIND == "again":
        tl.store(out_ptr + i % 8, 0.0)
    elif KIND == "again after a stride":
        tl.store(out_ptr + i % stride, 0.0)
    elif KIND == "strided":
        tl.store(out_ptr + i[:, None] * stride + j[None, :], 0.0)
    elif KIND == "products":
        tl.store(out_ptr + i[:, None] * j[None, :] + i[:, None] * stride, 0.0)


@pytest.mark.parametrize(
    ("kind", "always", "where_strides_are_trusted"),
    [
        ("line", True, True),
        ("backwards", True, True),
        ("rows", True, True),
        ("rows that overlap", False, False),
        ("again", False, False),
        ("again after a stride", False, False),
        ("strided", False, True),
        ("products", False, False),
    ],
)
def test_injective(kind, always, where_strides_are_trusted):
    module = lower_function(stores, {"out_ptr": "*fp32", "stride": "i32", "KIND": "constexpr"}, {"KIND": kind}, {})
    (pointer,) = (op.ptr for op in module.walk() if isinstance(op, StoreOp))
    assert is_injective(TilePolynomials(), pointer) == always
    assert is_injective(TilePolynomials(), pointer, trusts_strides=True) == where_strides_are_trusted
