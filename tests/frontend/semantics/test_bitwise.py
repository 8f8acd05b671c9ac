"""Comparisons, bit operators, shifts, logic, where."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("statement", "predicate"),
    [
        ("i < 3", "slt"),
        ("u < 3", "ult"),
        ("i >= i", "sge"),
        ("u >= i", "uge"),
        ("k < k", "ult"),
        ("i == 3", "eq"),
        ("u != 3", "ne"),
        ("x < 3", "olt"),
        ("x == x", "oeq"),
        ("x != x", "une"),
    ],
)
def test_comparison_predicate(ops, statement: str, predicate: str):
    assert ops(statement)[-1].predicate_name == predicate


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("i & 3", ["arith.constant", "arith.andi"]),
        ("k | k", ["arith.ori"]),
        ("i ^ u", ["arith.xori"]),
        ("~k", ["arith.constant", "arith.xori"]),
        ("i << 3", ["arith.constant", "arith.shli"]),
        ("i >> 3", ["arith.constant", "arith.shrsi"]),
        ("u >> 3", ["arith.constant", "arith.shrui"]),
        ("1 << n", ["arith.constant", "arith.shli"]),
        ("not n > 3", ["arith.constant", "arith.cmpi", "arith.constant", "arith.xori"]),
        ("k.logical_and(k)", ["arith.andi"]),
        ("k.logical_or(True)", ["arith.constant", "arith.constant", "arith.ori"]),
        ("tl.where(k, x, 0)", ["arith.constant", "arith.select"]),
        ("tl.where(n > 0, x, x)", ["arith.constant", "arith.cmpi", "arith.select"]),
        ("tl.where(k, p + t, p + t)", ["tt.splat", "tt.addptr", "tt.splat", "tt.addptr", "arith.select"]),
        ("tl.where(k, 1, 0)", ["arith.constant", "arith.constant", "arith.constant", "arith.constant", "arith.select"]),
    ],
)
def test_bit_and_select_ops(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


@pytest.mark.parametrize(("statement", "all_ones"), [("~k", -1), ("~i", -1), ("~u", -1), ("~u.to(tl.uint8)", -1)])
def test_invert_is_xor_with_all_ones(ops, statement: str, all_ones: int):
    constant = ops(statement)[-2]
    assert constant.value.get_values()[0] == all_ones


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "x & 1",
            "& is for integers and bools, got fp32[64]. Take the bits of a float with .to(tl.int32, bitcast=True).",
        ),
        (
            "i | 1.5",
            "| is for integers and bools, got 1.5. Take the bits of a float with .to(tl.int32, bitcast=True).",
        ),
        ("i >> 32", ">> of int32 by 32: a shift is by 0 to 31. Widen the value first."),
        ("u << -1", "<< of uint32 by -1: a shift is by 0 to 31. Widen the value first."),
        ("x == None", "== takes tensors and numbers, got None. Compare with `is None`."),
        (
            "p == q",
            "== does not take pointers, got pointer<fp32>. Load through it, or convert it with .to(tl.int64).",
        ),
        ("tl.where(p, 1, 2)", "The condition of tl.where is int1, got pointer<fp32>. Compare first, as in `x != 0`."),
        ("tl.where(k, p, 0)", "tl.where chooses between pointers of one type, got pointer<fp32> and 0."),
    ],
)
def test_bit_errors(error, statement: str, message: str):
    assert error(statement) == message
