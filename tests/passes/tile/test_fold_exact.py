"""What is computed without NumPy is what the interpreter gives."""

from __future__ import annotations

from math import copysign, inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects.builtin import UnrealizedConversionCastOp

from deuteron.ir import casts
from deuteron.ir.tt.convert import FpToFpOp
from deuteron.ir.types import FLOAT_TYPES, bit_width_of, f16, f32, f64, i1, i8, i16, i32, i64, is_float, tile
from deuteron.passes.tile.folding.computed import computed
from deuteron.passes.tile.folding.exact import exact

INTEGER_OPS = arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp
FLOAT_OPS = arith.AddfOp, arith.SubfOp, arith.MulfOp
INTEGERS = i8, i16, i32, i64
SINGLES = st.floats(width=32) | st.integers(-(2**24), 2**24).map(float) | st.sampled_from([0.0, -0.0, inf, -inf, nan])


def value(type):
    """Of no op that is known."""
    return UnrealizedConversionCastOp.get((), (type,)).results[0]


def is_same(one, other) -> bool:
    return (
        one == other and copysign(1, one) == copysign(1, other) and isinstance(one, float) == isinstance(other, float)
    )


@given(st.data(), st.sampled_from(INTEGER_OPS), st.sampled_from(INTEGERS), st.booleans())
def test_integers_wrap_around(data, op_class, type, is_of_tile):
    half = 1 << bit_width_of(type) - 1
    near_the_ends = st.sampled_from([-half, 1 - half, -1, 0, 1, half - 1])
    numbers = [data.draw(near_the_ends | st.integers(-half, half - 1)) for _ in range(2)]
    type = tile(type, (64,)) if is_of_tile else type
    op = op_class(value(type), value(type))
    assert is_same(exact(op, numbers), computed(op, numbers))


@given(st.sampled_from(FLOAT_OPS), SINGLES, SINGLES)
def test_floats_that_are_not_rounded(op_class, a, b):
    op = op_class(value(f32), value(f32))
    number = exact(op, [a, b])
    assert number is None or is_same(number, computed(op, [a, b]))


@pytest.mark.parametrize(
    ("op_class", "a", "b", "expected"),
    [
        (arith.SubfOp, 0.0, inf, -inf),
        (arith.AddfOp, 1.5, 2.0, 3.5),
        (arith.AddfOp, 2.0**24, 1.0, None),
        (arith.MulfOp, 3e38, 3e38, None),
        (arith.SubfOp, inf, inf, None),
    ],
)
def test_which_floats_are(op_class, a, b, expected):
    assert exact(op_class(value(f32), value(f32)), [a, b]) == expected


def test_other_types_are_left_to_the_interpreter():
    assert exact(arith.AddiOp(value(i1), value(i1)), [1, 1]) is None
    for type in (f16, f64):
        assert exact(arith.AddfOp(value(type), value(type)), [1.0, 1.0]) is None
    assert exact(arith.DivSIOp(value(i32), value(i32)), [7, 2]) is None


def conversions():
    """Each way from one type of numbers to another."""
    for target in FLOAT_TYPES:
        yield from ((casts.SIToFPOp, i32, target), (casts.UIToFPOp, i8, target), (FpToFpOp, f32, target))
        yield from ((casts.FPToSIOp, target, i32), (casts.FPToUIOp, target, i64), (FpToFpOp, target, f32))
    yield from ((arith.TruncFOp, f32, f16), (arith.ExtFOp, f16, f64), (arith.TruncFOp, f64, f32))
    yield from ((casts.ExtSIOp, i8, i64), (casts.ExtUIOp, i1, i32), (casts.TruncIOp, i64, i8), (casts.TruncIOp, i8, i1))


@pytest.mark.parametrize(("op_class", "source", "target"), list(conversions()))
def test_zero_stays_zero(op_class, source, target):
    if source == target:
        return
    op, zero = op_class(value(source), target), 0.0 if is_float(source) else 0
    assert float(exact(op, [zero])) == float(np.float64(computed(op, [zero]))) == 0
    assert copysign(1, exact(op, [zero])) == copysign(1, computed(op, [zero])) == 1
    assert is_float(target) == isinstance(exact(op, [zero]), float)
    assert exact(op, [-0.0]) is None and exact(op, [1]) is None
