"""Printing, asserting, hints: text and attributes in the IR, output and errors at compile time."""

from __future__ import annotations

import pytest

from deuteron.errors import CompileTimeAssertionFailure


@pytest.mark.parametrize(
    ("statement", "prefix"),
    [
        ("tl.device_print('row', n)", " row: "),
        ("tl.device_print('row: ', n)", " row: "),
        ("tl.device_print(' row', n)", " row: "),
        ("tl.device_print('hello')", " hello"),
        ("print('row', n)", " row: "),
    ],
)
def test_prefix_of_device_print(ops, statement: str, prefix: str):
    assert ops(statement)[-1].prefix.data == prefix


def test_device_print_keeps_signedness(ops):
    op = ops("tl.device_print('v', i, u, x, 3, hex=True)")[-1]
    assert list(op.is_signed.get_values()) == [1, 0, 0, 1]
    assert op.hex.value.data != 0


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("tl.device_assert(k, 'positive')", ["tt.assert"]),
        ("tl.device_assert(n)", ["arith.constant", "arith.cmpi", "tt.assert"]),
        ("tl.device_assert(k, 'm', mask=k)", ["arith.constant", "arith.xori", "arith.ori", "tt.assert"]),
        ("assert n > 0, 'positive'", ["arith.constant", "arith.cmpi", "tt.assert"]),
        ("tl.debug_barrier()", ["ttg.barrier"]),
        ("tl.assume(n > 0)", ["arith.constant", "arith.cmpi"]),
        ("tl.static_assert(True, 'holds')", []),
    ],
)
def test_debug_ops(op_names, statement: str, names: list[str]):
    assert op_names(statement) == names


def test_static_print(compile_lines, capsys):
    compile_lines(["tl.static_print('n is', n, 3, sep=':', end='!')"])
    assert capsys.readouterr().out == "n is:int32:3!"


def test_static_assert_shows_values(load_kernel, compile_lines):
    lines = ["BLOCK: tl.constexpr = 100", "tl.static_assert(BLOCK % 16 == 0, 'BLOCK is a multiple of 16')"]
    with pytest.raises(CompileTimeAssertionFailure) as raised:
        compile_lines(lines)
    assert raised.value.message == ("static_assert(BLOCK % 16 == 0) failed with BLOCK = 100: BLOCK is a multiple of 16")


@pytest.mark.parametrize(
    ("statement", "attribute", "values"),
    [
        ("tl.multiple_of(n * 8, 8)", "tt.divisibility", [8]),
        ("tl.multiple_of(i + 0, (16,))", "tt.divisibility", [16]),
        ("tl.max_contiguous(i + 0, 64)", "tt.contiguity", [64]),
        ("tl.max_constancy(m + m, [1, 4])", "tt.constancy", [1, 4]),
    ],
)
def test_hints_are_attributes(ops, statement: str, attribute: str, values: list[int]):
    attr = ops(statement)[-1].attributes[attribute]
    assert list(attr.get_values()) * len(values) == values * len(attr.get_values())


def test_hint_on_an_argument_is_dropped(op_names):
    assert op_names("tl.multiple_of(n, 8)") == []


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tl.device_print(n)", "The prefix of tl.device_print is text, got int32. Write tl.device_print('x', x)."),
        ("tl.device_print('é')", "The prefix of tl.device_print is printable ASCII, got 'é'."),
        ("tl.device_print('a', 'b')", "What tl.device_print prints must be a tensor or a number, got 'b'."),
        ("tl.device_assert(x)", "The condition of tl.device_assert is int1, got fp32[64]. Compare, as in `x != 0`."),
        ("tl.device_assert(k, 3)", "The message of tl.device_assert is text, got 3."),
        (
            "tl.static_assert(n > 0)",
            "tl.static_assert needs a condition that is known at compile time, got int1. "
            "Use tl.device_assert for one that is not.",
        ),
        ("tl.static_assert(1 > 2)", "static_assert(1 > 2) failed."),
        ("tl.assume(n)", "The condition of tl.assume is int1, got int32. Compare, as in `n > 0`."),
        ("tl.multiple_of(i, n)", "tl.multiple_of takes integers known at compile time, got int32."),
        (
            "tl.max_contiguous(m, 4)",
            "tl.max_contiguous takes one value for each dimension of fp16[16, 32], got 4. Give 2.",
        ),
        ("tl.range(4)", "tl.range is no value. Write it after `in`, as in `for i in tl.range(n):`."),
    ],
)
def test_debug_errors(error, statement: str, message: str):
    assert error(statement) == message
