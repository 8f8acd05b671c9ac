"""What is around an op, and what is made in it."""

from __future__ import annotations

from xdsl.dialects import arith, scf

from deuteron.ir.around import is_defined_in, loops_around, ops_around
from deuteron.ir.nested import nested_ops
from deuteron.ir.text import parse_module

NESTED = """
tt.func public @k(%n: i32, %c: i1) {
  %0 = arith.constant 0 : i32
  %1 = scf.for %i = %0 to %n step %n iter_args(%t = %0) -> (i32) : i32 {
    %2 = scf.while (%w = %t) : (i32) -> i32 {
      scf.condition(%c) %w : i32
    } do {
    ^bb0(%b: i32):
      %3 = scf.if %c -> (i32) {
        %x = arith.addi %i, %b : i32
        scf.yield %x : i32
      } else {
        scf.yield %n : i32
      }
      scf.yield %3 : i32
    }
    scf.yield %2 : i32
  }
  tt.return
}
"""


def test_from_inside_out():
    module = parse_module(NESTED)
    (add,), (loop,) = (nested_ops(module, kind) for kind in (arith.AddiOp, scf.ForOp))
    names = [op.name for op in ops_around(add)]
    assert names == ["scf.if", "scf.while", "scf.for", "tt.func", "builtin.module"]
    assert [op.name for op in loops_around(add)] == ["scf.while", "scf.for"]
    assert list(loops_around(loop)) == []


def test_what_a_loop_gives_is_made_beside_it():
    module = parse_module(NESTED)
    (add,), (loop,), (branch,) = (nested_ops(module, kind) for kind in (arith.AddiOp, scf.ForOp, scf.IfOp))
    function = loop.parent_op()
    assert all(is_defined_in(value, loop) for value in (add.result, *add.operands, *branch.results))
    assert not any(is_defined_in(value, loop) for value in (*loop.results, loop.ub, *function.body.block.args))
    assert all(is_defined_in(value, function) for value in (*loop.results, *function.body.block.args))
