"""Shape ops against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

X = np.arange(32, dtype=np.int32).reshape(2, 4, 4)


@pytest.mark.parametrize(
    ("op", "source", "expected"),
    [
        ('"tt.trans"(%x0) <{order = array<i32: 1, 2, 0>}>', X, X.transpose(1, 2, 0)),
        ('"tt.reshape"(%x0)', X, X.reshape(8, 4)),
        ('"tt.reshape"(%x0)', X.transpose(2, 1, 0), X.transpose(2, 1, 0).reshape(32)),
        ('"tt.expand_dims"(%x0) <{axis = 1 : i32}>', X[0], X[0][:, None]),
        ('"tt.broadcast"(%x0)', X[:, :1], np.broadcast_to(X[:, :1], (2, 8, 4))),
        ('"tt.splat"(%x0)', X[0, 0, 3], np.full((2, 4), 3)),
        ('"tt.unsplat"(%x0)', X[:1, :1, 2], np.int32(2)),
    ],
)
def test_one_operand(evaluate, op, source, expected):
    np.testing.assert_array_equal(evaluate(op, [("i32", source)], "i32", expected.shape), expected)


def test_join_and_cat(evaluate):
    a, b = X[0], X[1]
    joined = evaluate('"tt.join"(%x0, %x1)', [("i32", a), ("i32", b)], "i32", (4, 4, 2))
    np.testing.assert_array_equal(joined, np.stack([a, b], -1))
    both = evaluate('"tt.cat"(%x0, %x1)', [("i32", a[0]), ("i32", b[0])], "i32", (8,))
    np.testing.assert_array_equal(both, np.concatenate([a[0], b[0]]))


def test_split_takes_a_joined_tile_apart(evaluate):
    pair = X.reshape(4, 4, 2)
    split = '%s:2 = "tt.split"(%x0) : (tensor<4x4x2xi32>) -> (tensor<4x4xi32>, tensor<4x4xi32>)'
    op, types = '"arith.subi"(%s#1, %s#0)', ["tensor<4x4xi32>"] * 2
    result = evaluate(op, [("i32", pair * pair)], "i32", (4, 4), prologue=split, types=types)
    np.testing.assert_array_equal(result, pair[..., 1] ** 2 - pair[..., 0] ** 2)
