"""Types of tiles are one object each, and constants of tiles hold what their numbers are in the type."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from deuteron.ir.arith import constant, constant_value
from deuteron.ir.ttg.layout import with_layout
from deuteron.ir.types import bf16, f16, f32, f64, i1, i8, i32, i64, tile, with_element_type
from deuteron.layout.linear import LinearLayout


def test_one_object_for_each_type():
    of_floats = tile(f32, [64, 2])
    assert tile(f32, (64, 2)) is of_floats
    assert with_element_type(tile(i32, (64, 2)), f32) is of_floats
    assert tile(f64, (64, 2)) is not of_floats and tile(f32, (2, 64)) is not of_floats


def test_layouts_are_part_of_a_type():
    layout = LinearLayout.identity(64, "register", "dim0")
    plain, placed = tile(f32, (64,)), with_layout(tile(f32, (64,)), layout)
    assert placed != plain
    assert with_layout(tile(f32, (64,)), layout) is placed
    assert with_element_type(placed, i32).encoding == placed.encoding


@pytest.mark.parametrize(
    ("type", "given", "held"),
    [
        (f32, 0.1, 0.10000000149011612),
        (f16, 1, 1.0),
        (bf16, -2.5, -2.5),
        (f64, 0.1, 0.1),
        (i1, True, 1),
        (i8, 255, -1),
        (i8, 300, 44),
        (i32, 2**31, -(2**31)),
        (i64, -1, -1),
    ],
)
def test_constants_of_tiles(type, given, held):
    made = constant(given, tile(type, (4,)))
    assert constant_value(made.result) == held
    assert isinstance(made.value, DenseIntOrFPElementsAttr) and len(made.value) == 4


def test_zeros_of_both_signs_differ():
    zero, negative = (constant(value, tile(f32, (4,))).value for value in (0.0, -0.0))
    assert zero != negative
    assert negative.data.data == b"\x00\x00\x00\x80" * 4
