"""Memory of each thread in IR: text, and what the verifier objects to."""

from __future__ import annotations

import pytest
from ir_text import generic_text
from xdsl.utils.exceptions import VerifyException

from deuteron.errors import IRError
from deuteron.ir.slice_indices import check_slice_index
from deuteron.ir.text import parse_module
from deuteron.ir.ttg.private import PrivateViewOp

LANES = "lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 0]], warp = [], block = []"
TILE = f"tensor<16x8xf32, #ttg.linear<{{register = [[1, 0], [2, 0], [0, 4]], {LANES}}}>>"


def memory(axis: int, count: int, tile: str = TILE) -> str:
    return f"!ttg.private<{tile}, #builtin.int<{axis}>, #builtin.int<{count}>>"


def viewed(axis: int, count: int, tile: str = TILE) -> str:
    alloc = f'%m = "ttg.private_alloc"() : () -> {memory(1, 2)}\n'
    return alloc + f'%v = "ttg.private_view"(%m) : ({memory(1, 2)}) -> {memory(axis, count, tile)}'


def of_slice(number: int, tile: str = TILE.replace("16x8", "16x4").replace(", [0, 4]]", "]")) -> str:
    alloc = f'%m = "ttg.private_alloc"() : () -> {memory(1, 2)}\n%n = arith.constant {number} : i32\n'
    return alloc + f'%v = "ttg.private_view"(%m, %n) : ({memory(1, 2)}, i32) -> {memory(1, 1, tile)}'


@pytest.mark.parametrize("text", [viewed(1, 1), viewed(1, 2), of_slice(1)])
def test_round_trip(parse_body, text):
    printed = generic_text(parse_body("%i: i32", text))
    assert "ttg.private_view" in printed
    assert generic_text(parse_module(printed)) == printed


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (viewed(1, 4), "has no 4 slices along dimension 1"),
        (viewed(0, 2), "has no 2 slices along dimension 0"),
        (viewed(1, 2, TILE.replace("f32", "f16")), "the memory holds .*f32.*, got .*f16"),
        (of_slice(0, TILE), "the memory holds .*16x4.*, got .*16x8"),
    ],
)
def test_errors(parse_body, op, message):
    with pytest.raises(IRError, match=message):
        parse_body("%i: i32", op)


def test_a_slice_that_there_is_not(parse_body):
    (view,) = (op for op in parse_body("%i: i32", of_slice(2)).walk() if isinstance(op, PrivateViewOp))
    with pytest.raises(VerifyException, match=r"takes one of 2 slices: .* not 2"):
        check_slice_index(view)
