"""Gather and histogram: types, ops, errors."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("expression", "type", "names"),
    [
        ("tl.gather(x, i, 0)", "fp32[64]", ["tt.gather"]),
        ("tl.gather(m, m.to(tl.int8), -1)", "fp16[16, 32]", ["arith.extf", "arith.fptosi", "arith.extsi", "tt.gather"]),
        ("x.gather(u, 0)", "fp32[64]", ["arith.extui", "tt.gather"]),
        ("tl.histogram(i, 16)", "int32[16]", ["tt.histogram"]),
        ("tl.histogram(i.to(tl.uint8), 16, k)", "int32[16]", ["arith.trunci", "arith.extui", "tt.histogram"]),
        ("i.histogram(16, n > 3)", "int32[16]", ["arith.constant", "arith.cmpi", "tt.splat", "tt.histogram"]),
    ],
)
def test_indexing(op_names, result_type, expression: str, type: str, names: list[str]):
    assert result_type(expression) == type
    assert op_names(expression) == names


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.gather(x, x, 0)", "The index of tl.gather is a tile of integers, got fp32[64]. Convert it to tl.int32."),
        ("tl.gather(n, i, 0)", "The source of tl.gather is a tile, got int32. Load scalars by a pointer."),
        (
            "tl.gather(m, i, 0)",
            "The source and the index of tl.gather have one rank, got fp16[16, 32] and int32[64]. "
            "Insert dimensions with x[:, None] and repeat them with tl.broadcast_to.",
        ),
        (
            "tl.gather(m, i[:, None], 0)",
            "The index of tl.gather along axis 0 has the source's other extents, got [64, 1] for [16, 32]. "
            "Broadcast it along axis 1.",
        ),
        ("tl.gather(x, i, 1)", "fp32[64] has no axis 1: it has 1 dimension."),
        ("tl.histogram(m, 4)", "tl.histogram counts in a tile of one dimension, got fp16[16, 32]. Use tl.ravel."),
        ("tl.histogram(x, 4)", "tl.histogram counts integers, got fp32[64]. Convert them to tl.int32."),
        ("tl.histogram(i, 3)", "Expected powers of two, got 3 in the shape [3]. Use 4 and mask the tail."),
        ("tl.histogram(i, 4, i)", "The mask of tl.histogram is bool, got int32[64]. Compare it with something."),
    ],
)
def test_errors(error, statement: str, message: str):
    assert error(statement) == message
