"""Reductions and scans: regions, axes, several operands, errors."""

from __future__ import annotations

import pytest


def region_names(op) -> list[str]:
    return [inner.name for inner in op.combine.block.ops]


@pytest.mark.parametrize(
    ("expression", "type", "names"),
    [
        ("tl.reduce(m, 1, add)", "fp16[16]", ["tt.reduce"]),
        ("tl.reduce(m, -2, add)", "fp16[32]", ["tt.reduce"]),
        ("tl.reduce(x, 0, add)", "fp32", ["tt.reduce"]),
        ("tl.reduce(m, None, add)", "fp16", ["tt.reshape", "tt.reduce"]),
        ("tl.reduce(m, 0, add, keep_dims=True)", "fp16[1, 32]", ["tt.reduce", "tt.expand_dims"]),
        ("tl.reduce(m, None, add, True)", "fp16[1, 1]", ["tt.reshape", "tt.reduce", "tt.splat", "tt.expand_dims"]),
        ("tl.associative_scan(m, 1, add)", "fp16[16, 32]", ["tt.scan"]),
        ("tl.sum(i.to(tl.int8))", "int32", ["arith.trunci", "arith.extsi", "tt.reduce"]),
        ("tl.sum(k)", "uint32", ["arith.extui", "tt.reduce"]),
        ("tl.sum(h)", "fp16", ["tt.reduce"]),
        ("tl.sum(h, dtype=tl.float32)", "fp32", ["arith.extf", "tt.reduce"]),
        ("tl.max(h)", "fp32", ["arith.extf", "tt.reduce"]),
        ("i.min()", "int32", ["tt.reduce"]),
        ("tl.max(m, 1, return_indices=True)[1]", "int32[16]",
         ["tt.make_range", "tt.reshape", "tt.broadcast", "tt.reduce"]),
        ("tl.argmin(x, 0)", "int32", ["tt.make_range", "tt.reduce"]),
        ("tl.cumsum(k)", "uint32[64]", ["arith.extui", "tt.scan"]),
    ],
)  # fmt: skip
def test_reductions(op_names, result_type, expression: str, type: str, names: list[str]):
    assert result_type(expression) == type
    assert op_names(expression) == names


def test_combine_function_is_inlined(ops):
    assert region_names(ops("tl.reduce(x, 0, add)")[-1]) == ["arith.addf", "tt.reduce.return"]
    assert region_names(ops("tl.associative_scan(i, 0, add)")[-1]) == ["arith.addi", "tt.scan.return"]
    assert region_names(ops("tl.max(x)")[-1]) == ["arith.maxnumf", "tt.reduce.return"]


def test_scan_direction(ops):
    assert ops("tl.cumsum(x, 0, reverse=True)")[-1].reverse.value.data != 0
    assert ops("tl.cumsum(x, 0)")[-1].reverse.value.data == 0


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.reduce(x, 2, add)", "fp32[64] has no axis 2: it has 1 dimension."),
        ("tl.reduce(m, -3, add)", "fp16[16, 32] has no axis -3: it has 2 dimensions."),
        ("tl.reduce(x, n, add)", "The axis of fp32[64] is an integer known at compile time, got int32."),
        ("tl.reduce(n, 0, add)", "tl.reduce takes tiles, got int32. A scalar has nothing to combine."),
        ("tl.sum(f)", "tl.sum: tl.reduce takes tiles, got fp32. A scalar has nothing to combine."),
        ("tl.reduce((x, m), 0, add)", "tl.reduce takes tiles of one shape, got (fp32[64], fp16[16, 32])."),
        ("tl.reduce((), 0, add)", "tl.reduce takes at least one tile, got none."),
        (
            "tl.reduce(x, 0, max)",
            "The combine function of tl.reduce is a @jit function, or one of the language such as tl.maximum, got "
            "function max.",
        ),
        (
            "tl.reduce(x, 0, compare)",
            "'compare' returned int1 for tl.reduce, expected fp32. "
            "Convert what it returns to the types of its arguments.",
        ),
        ("tl.associative_scan(x, None, add)", "The axis of fp32[64] is an integer known at compile time, got None."),
        ("tl.xor_sum(x)", "tl.xor_sum: it is for integers"),
    ],
)
def test_reduction_errors(error, statement: str, message: str):
    assert error(statement) == message
