"""What is around an op, and what is made in it."""

from __future__ import annotations

from xdsl.dialects import arith, scf

from deuteron.ir.around import is_defined_in, loops_around, ops_around
from deuteron.ir.nested import nested_ops


def test_from_inside_out(nested_loops):
    (add,), (loop,) = (nested_ops(nested_loops, kind) for kind in (arith.AddiOp, scf.ForOp))
    names = [op.name for op in ops_around(add)]
    assert names == ["scf.if", "scf.while", "scf.for", "tt.func", "builtin.module"]
    assert [op.name for op in loops_around(add)] == ["scf.while", "scf.for"]
    assert list(loops_around(loop)) == []


def test_what_a_loop_gives_is_made_beside_it(nested_loops):
    (add,), (loop,), (branch,) = (nested_ops(nested_loops, kind) for kind in (arith.AddiOp, scf.ForOp, scf.IfOp))
    function = loop.parent_op()
    assert all(is_defined_in(value, loop) for value in (add.result, *add.operands, *branch.results))
    assert not any(is_defined_in(value, loop) for value in (*loop.results, loop.ub, *function.body.block.args))
    assert all(is_defined_in(value, function) for value in (*loop.results, *function.body.block.args))
