"""Casts on scalars and tiles, and what they refuse."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.arith import constant
from deuteron.ir.casts import (
    ExtSIOp,
    ExtUIOp,
    FPToSIOp,
    FPToUIOp,
    RemFOp,
    SIToFPOp,
    TruncIOp,
    UIToFPOp,
)
from deuteron.ir.types import f32, i8, i32, i64, tile

SHAPES = [(), (4,), (4, 8)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("op", "source", "result"),
    [
        (ExtSIOp, i32, i64),
        (ExtUIOp, i32, i64),
        (TruncIOp, i32, i8),
        (SIToFPOp, i32, f32),
        (UIToFPOp, i32, f32),
        (FPToSIOp, f32, i32),
        (FPToUIOp, f32, i32),
    ],
)
def test_cast_verifies_in_one_direction(op, source, result, shape):
    wide, narrow = tile(source, shape), tile(result, shape)
    op(constant(1, wide).result, narrow).verify()
    with pytest.raises(VerifyException, match=f"{op.name} from"):
        op(constant(1, narrow).result, wide).verify()


def test_cast_keeps_the_shape():
    with pytest.raises(VerifyException, match="arith.extsi from tensor<4xi32> to tensor<8xi64>"):
        ExtSIOp(constant(1, tile(i32, (4,))).result, tile(i64, (8,))).verify()


def test_remainder_of_floats():
    x = constant(1.0, tile(f32, (4,)))
    RemFOp(x, x).verify()
    i = constant(1, tile(i32, (4,)))
    with pytest.raises(VerifyException):
        RemFOp(i, i).verify()
