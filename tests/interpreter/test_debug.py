"""Prints are Triton's lines; a failed assertion is an error with its place."""

from __future__ import annotations

import numpy as np
import pytest

from deuteron.errors import AssertionFailure, Location


def print_op(operands: str, types: str, signed: str, hexadecimal: str = "false") -> str:
    properties = f'prefix = " x: ", hex = {hexadecimal}, isSigned = array<i32: {signed}>'
    return f'"tt.print"({operands}) <{{{properties}}}> : ({types}) -> ()'


def test_elements_of_a_tile(run_kernel, capsys):
    body = '%t = "arith.constant"() <{value = dense<[[1.5, -2.0]]> : tensor<1x2xf32>}> : () -> tensor<1x2xf32>\n'
    run_kernel("", body + print_op("%t", "tensor<1x2xf32>", "1"), [], grid=(2, 1, 1))
    assert capsys.readouterr().out == (
        "pid (0, 0, 0) idx (0, 0) x: 1.500000\n"
        "pid (0, 0, 0) idx (0, 1) x: -2.000000\n"
        "pid (1, 0, 0) idx (0, 0) x: 1.500000\n"
        "pid (1, 0, 0) idx (0, 1) x: -2.000000\n"
    )


@pytest.mark.parametrize(
    ("signed", "hexadecimal", "shown"), [("1", "false", "-1"), ("0", "false", "255"), ("1", "true", "0xff")]
)
def test_scalars(run_kernel, capsys, signed, hexadecimal, shown):
    run_kernel("%v: i8", print_op("%v", "i8", signed, hexadecimal), [-1])
    assert capsys.readouterr().out == f"pid (0, 0, 0) idx () x: {shown}\n"


def test_several_operands(run_kernel, capsys):
    run_kernel("%v: i32, %w: i1", print_op("%v, %w", "i32, i1", "1, 0"), [7, True])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["pid (0, 0, 0) idx () x: (operand 0) 7", "pid (0, 0, 0) idx () x: (operand 1) 1"]


def test_columns_are_aligned_and_percent_signs_are_text(run_kernel, capsys):
    run_kernel("", '%t = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}> : () -> tensor<16xi32>\n'
               + print_op("%t", "tensor<16xi32>", "1").replace(" x: ", " 5% d: "), [])  # fmt: skip
    run_kernel("", print_op("", "", "").replace(" x: ", " 5% done").replace("i32: >", "i32>"), [])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:16] == [f"pid (0, 0, 0) idx ({i:2}) 5% d: {i}" for i in range(16)]
    assert lines[16:] == ["pid (0, 0, 0) 5% done"]


def test_an_assertion_names_its_lane(run_kernel):
    body = """
    %m = "arith.constant"() <{value = dense<[true, true, false, false]> : tensor<4xi1>}> : () -> tensor<4xi1>
    "tt.assert"(%m) <{message = "n too small"}> : (tensor<4xi1>) -> () loc("k.py":3:5)"""
    with pytest.raises(AssertionFailure) as caught:
        run_kernel("", body, [])
    assert caught.value.message == "Assertion failed in lane (2,) of program (0, 0, 0): n too small"
    assert caught.value.location == Location("k.py", 3, 5)


def test_an_assertion_that_holds(run_kernel):
    run_kernel("%c: i1", '"tt.assert"(%c) <{message = "no"}> : (i1) -> ()', [np.True_])
