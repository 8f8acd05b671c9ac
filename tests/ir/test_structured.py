"""Branches between blocks become `scf.if`, and compute the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from xdsl.dialects.scf import IfOp

import deuteron
from deuteron.compiler import IRSource
from deuteron.errors import IRError
from deuteron.ir.text import parse_module, print_module

KERNEL = """
module {{
  tt.func public @k(%out: !tt.ptr<i32>, %n: i32) {{
    %1 = arith.constant 1 : i32
    %2 = arith.constant 2 : i32
    %4 = arith.constant 4 : i32
    %a0 = arith.andi %n, %1 : i32
    %a = arith.cmpi ne, %a0, %n : i32
    %b0 = arith.andi %n, %2 : i32
    %b = arith.cmpi eq, %b0, %2 : i32
    %c0 = arith.andi %n, %4 : i32
    %c = arith.cmpi eq, %c0, %4 : i32
    {body}
  }}
}}
"""
# What is stored by hand: f(a, b, c) of the conditions.
EARLY_RETURN = """
    cf.cond_br %a, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
    tt.store %out, %n : !tt.ptr<i32>
    tt.return"""
# Two returns, a value that both other ways bring, and code after that.
MEETING = """
    cf.cond_br %a, ^bb1, ^bb4(%n : i32)
  ^bb1:
    cf.cond_br %b, ^bb2, ^bb3
  ^bb2:
    tt.return
  ^bb3:
    %x = arith.addi %n, %4 : i32
    cf.br ^bb4(%x : i32)
  ^bb4(%y: i32):
    cf.cond_br %c, ^bb5, ^bb6
  ^bb5:
    %z = arith.muli %y, %4 : i32
    tt.store %out, %z : !tt.ptr<i32>
    cf.br ^bb6
  ^bb6:
    %p = tt.addptr %out, %1 : !tt.ptr<i32>, i32
    tt.store %p, %y : !tt.ptr<i32>
    tt.return
  ^bb7:
    %q = ub.poison : i32
    cf.br ^bb4(%q : i32)"""
# Paths that cross: one block is reached from two sides, and not by all.
CROSSING = """
    cf.cond_br %a, ^bb1, ^bb2
  ^bb1:
    cf.cond_br %b, ^bb3(%1 : i32), ^bb4
  ^bb2:
    cf.cond_br %c, ^bb3(%2 : i32), ^bb4
  ^bb3(%x: i32):
    tt.store %out, %x : !tt.ptr<i32>
    tt.return
  ^bb4:
    %p = tt.addptr %out, %1 : !tt.ptr<i32>, i32
    tt.store %p, %n : !tt.ptr<i32>
    tt.return"""


def meeting(n: int, a: bool, b: bool, c: bool) -> tuple[int, int]:
    if a and b:
        return 0, 0
    y = n + 4 if a else n
    return (4 * y if c else 0), y


def crossing(n: int, a: bool, b: bool, c: bool) -> tuple[int, int]:
    if (a and b) or (not a and c):
        return (1 if a else 2), 0
    return 0, n


EXPECTED = {
    EARLY_RETURN: lambda n, a, b, c: (0 if a else n, 0),
    MEETING: meeting,
    CROSSING: crossing,
}


@pytest.mark.parametrize("body", EXPECTED, ids=["early return", "meeting", "crossing"])
def test_results(body):
    kernel = deuteron.compile(IRSource.from_text(KERNEL.format(body=body), "ttir"), target="cpu")
    for n in range(8):
        out = np.zeros(2, np.int32)
        kernel[(1,)](out, n)
        assert tuple(out) == EXPECTED[body](n, n & 1 != n, n & 2 == 2, n & 4 == 4)


def test_a_branch_becomes_an_if():
    module = parse_module(KERNEL.format(body=EARLY_RETURN))
    function = module.body.block.first_op
    assert len(function.body.blocks) == 1
    assert len([op for op in function.walk() if isinstance(op, IfOp)]) == 1
    text = print_module(module)
    assert print_module(parse_module(text)) == text


def test_a_loop_of_branches_is_refused():
    text = KERNEL.format(body="cf.br ^bb1\n  ^bb1:\n    cf.cond_br %a, ^bb1, ^bb2\n  ^bb2:\n    tt.return")
    with pytest.raises(IRError, match="branches make a loop"):
        parse_module(text)


def test_many_paths_are_refused():
    """Each of these blocks is reached from two others, and none by all paths."""
    steps = itertools.chain.from_iterable(
        (
            f"  ^bb{2 * i}:\n    cf.cond_br %a, ^bb{2 * i + 2}, ^bb{2 * i + 3}",
            f"  ^bb{2 * i + 1}:\n    cf.cond_br %b, ^bb{2 * i + 3}, ^bb{2 * i + 2}",
        )
        for i in range(1, 10)
    )
    body = "\n".join(["cf.cond_br %c, ^bb2, ^bb3", *steps, "  ^bb20:", "    tt.return", "  ^bb21:", "    tt.return"])
    with pytest.raises(IRError, match="copied more than"):
        parse_module(KERNEL.format(body=body))


def test_functions_with_results():
    text = """
module {
  tt.func public @k(%out: !tt.ptr<i32>, %n: i32) {
    %x = tt.call @f(%n) : (i32) -> i32
    tt.store %out, %x : !tt.ptr<i32>
    tt.return
  }
  tt.func private @f(%n: i32) -> i32 attributes {noinline = true} {
    %0 = arith.constant 0 : i32
    %c = arith.cmpi slt, %n, %0 : i32
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    %m = arith.subi %0, %n : i32
    tt.return %m : i32
  ^bb2:
    tt.return %n : i32
  }
}
"""
    kernel = deuteron.compile(IRSource.from_text(text, "ttir"), target="cpu")
    for n in (-5, 0, 7):
        out = np.zeros(1, np.int32)
        kernel[(1,)](out, n)
        assert out[0] == abs(n)


def test_the_function_of_a_map():
    """The region of a `tt.map_elementwise` has blocks where its function returns early, and another terminator."""
    text = """
module {
  tt.func public @k(%out: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %m = tt.splat %n : i32 -> tensor<16xi32>
    %r = "tt.map_elementwise"(%i, %m) <{pack = 1 : i32}> ({
    ^bb0(%x: i32, %y: i32):
      %more = arith.cmpi sgt, %x, %y : i32
      cf.cond_br %more, ^bb1, ^bb2
    ^bb1:
      %sum = arith.addi %x, %y : i32
      cf.br ^bb4(%sum : i32)
    ^bb2:
      %equal = arith.cmpi eq, %x, %y : i32
      cf.cond_br %equal, ^bb4(%zero : i32), ^bb3
    ^bb3:
      %difference = arith.subi %x, %y : i32
      cf.br ^bb4(%difference : i32)
    ^bb4(%result: i32):
      tt.map_elementwise.return %result : i32
    }) : (tensor<16xi32>, tensor<16xi32>) -> tensor<16xi32>
    %p = tt.splat %out : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>>
    %q = tt.addptr %p, %i : tensor<16x!tt.ptr<i32>>, tensor<16xi32>
    tt.store %q, %r : tensor<16x!tt.ptr<i32>>
    tt.return
  }
}
"""
    kernel = deuteron.compile(IRSource.from_text(text, "ttir"), target="cpu")
    out, i, n = np.zeros(16, np.int32), np.arange(16), 5
    kernel[(1,)](out, n)
    np.testing.assert_array_equal(out, np.where(i > n, i + n, i - n))


def test_blocks_that_end_otherwise_are_refused():
    with pytest.raises(IRError, match=r"tt\.return, cf\.br or cf\.cond_br|one kind of terminator"):
        parse_module(KERNEL.format(body="cf.cond_br %a, ^bb1, ^bb2\n  ^bb1:\n    tt.return\n  ^bb2:\n    scf.yield"))
