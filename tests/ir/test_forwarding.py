"""What loops and branches forward, from both ends."""

from __future__ import annotations

from xdsl.dialects import arith, scf

from deuteron.ir.forwarding import forwarded_from, forwarded_to
from deuteron.ir.nested import nested_ops


def test_from_both_ends(nested_loops):
    loop, inner, branch, add, multiply = (
        nested_ops(nested_loops, kind)[0] for kind in (scf.ForOp, scf.WhileOp, scf.IfOp, arith.AddiOp, arith.MuliOp)
    )
    index, same, carried = loop.body.block.args
    before, after = (region.block.args[0] for region in inner.regions)
    n = loop.ub
    comes_from = {
        index: [],
        same: [n, same],
        loop.results[0]: [n, same],
        carried: [loop.lb, inner.results[0]],
        loop.results[1]: [loop.lb, inner.results[0]],
        before: [carried, branch.results[0]],
        after: [multiply.result],
        inner.results[0]: [multiply.result],
        branch.results[0]: [add.result, n],
        add.result: [],
        n: [],
    }
    assert {value: list(forwarded_from(value)) for value in comes_from} == comes_from
    becomes = [(use.operation.operands[use.index], one) for use in uses_in(nested_loops) for one in forwarded_to(use)]
    assert set(becomes) == {(source, value) for value, sources in comes_from.items() for source in sources}


def uses_in(module):
    ops = nested_ops(module)
    arguments = [arg for op in ops for region in op.regions for block in region.blocks for arg in block.args]
    return [use for value in (*arguments, *(value for op in ops for value in op.results)) for use in value.uses]
