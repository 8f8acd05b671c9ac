"""Whether no two elements of a tile of addresses are one: asked first of all, when nothing is known of it yet."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deuteron as triton
import deuteron.language as tl
from deuteron.analysis.addresses.steps import WRAPPED, Step, injective_where
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.frontend import lower_function
from deuteron.ir.tt.memory import StoreOp
from deuteron.layout.steps import are_injective


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
    elif KIND == "strided too far":
        tl.store(out_ptr + i[:, None] * 1073741824 + j[None, :], 0.0)
    elif KIND == "products":
        tl.store(out_ptr + i[:, None] * j[None, :] + i[:, None] * stride, 0.0)


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        ("line", ()),
        ("backwards", ()),
        ("rows", ()),
        ("rows that overlap", None),
        ("again", None),
        ("again after a stride", None),
        ("strided", (Step(16, 1, 1, None), Step(32, 0, 1, 1), WRAPPED)),
        ("strided too far", None),
        ("products", None),
    ],
)
def test_injective(kind, where):
    module = lower_function(stores, {"out_ptr": "*fp32", "stride": "i32", "KIND": "constexpr"}, {"KIND": kind}, {})
    (pointer,) = (op.ptr for op in module.walk() if isinstance(op, StoreOp))
    assert injective_where(TilePolynomials(), pointer) == where


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(-12, 12)), max_size=3))
def test_steps_beside_all_places(steps):
    places = [sum(step * i for (_, step), i in zip(steps, index, strict=True)) for index in _indices(steps)]
    if are_injective(steps):
        assert len(set(places)) == len(places)
    else:  # steps with gaps between are the only ones that are refused without need
        assert len(set(places)) < len(places) or len([extent for extent, _ in steps if extent > 1]) > 1


def _indices(steps):
    return product(*(range(extent) for extent, _ in steps))
