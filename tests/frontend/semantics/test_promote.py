"""Promotion against the table in promotion.txt, which Triton 3.9 made; both orders of the operands."""

from __future__ import annotations

import operator
from pathlib import Path

import pytest

from deuteron import language as tl
from deuteron.errors import CompilationError
from deuteron.frontend.semantics import RULES
from deuteron.frontend.semantics.creation import full
from deuteron.language.types import dtype

OPERATORS = {
    "+": operator.add,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "where": tl.where,
}
NUMBERS = {"True": True, "1": 1, "-1": -1, "2**31": 2**31, "2**40": 2**40, "0.5": 0.5, "1e300": 1e300}


def read_table(symbol: str) -> list[tuple[str, str, str]]:
    """(row, column, result) of the block of an operator."""
    text = Path(__file__).with_name("promotion.txt").read_text()
    block = text.split(f"[{symbol}]\n")[1].split("\n\n")[0]
    header, *rows = [line.split() for line in block.splitlines()]
    return [(row[0], column, result) for row in rows for column, result in zip(header, row[1:], strict=True)]


def operand(ctx, name: str):
    return NUMBERS[name] if name in NUMBERS else full(ctx, [4], 0, dtype(name))


def result(ctx, symbol: str, x, y) -> str:
    first = [full(ctx, [4], 1, tl.int1)] if symbol == "where" else []
    try:
        return str(RULES[OPERATORS[symbol]](ctx, *first, x, y).dtype)
    except CompilationError:
        return "-"


@pytest.mark.parametrize("symbol", OPERATORS)
def test_promotion_table(ctx, symbol: str):
    table = read_table(symbol)
    assert len(table) == 15 * 22
    wrong = []
    for row, column, expected in table:
        x, y = operand(ctx, row), operand(ctx, column)
        wrong += [(row, column, found) for found in [result(ctx, symbol, x, y)] if found != expected]
        wrong += [(column, row, found) for found in [result(ctx, symbol, y, x)] if found != expected]
    assert wrong == []


def test_runtime_scalar_counts_like_a_tile(result_type):
    assert result_type("h + f") == "fp32[64]"
    assert result_type("h + 0.5") == "fp16[64]"


def test_ternary_numbers_count_together(result_type):
    assert result_type("tl.clamp(h, 0, 6.0)") == "fp16[64]"
    assert result_type("tl.clamp(0, h, 6.0)") == "fp16[64]"
    assert result_type("tl.clamp(i, 0.0, 6)") == "fp32[64]"
    assert result_type("tl.fma(h, 2, f)") == "fp32[64]"


def test_mixed_signedness_says_what_to_do(error):
    assert error("u // i") == (
        "Cannot divide uint32 and int32: one is signed, the other is not. Convert one of them with .to()."
    )


def test_number_out_of_range(error):
    assert error("i.to(tl.int8) + 200") == (
        "200 is out of range for int8, -128 to 127. Convert the other operand to a wider or unsigned type with .to()."
    )
    below = error("u + -1")
    assert below.startswith("-1 is out of range for uint32, 0 to 4294967295.") and "wider or signed type" in below
    assert error("tl.to_tensor(2**64)") == "The integer 18446744073709551616 does not fit in 64 bits."
