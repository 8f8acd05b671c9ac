"""Computes what is computed twice once: a pure op with the operands and attributes of an earlier one takes its results.

    %a = "tt.splat"(%n) : (i32) -> tensor<64xi32>              %a = "tt.splat"(%n)
    %b = "tt.splat"(%n) : (i32) -> tensor<64xi32>       ->     %c = "arith.addi"(%a, %a)
    %c = "arith.addi"(%a, %b)

An op in the body of a loop or of an `if` may take the results of one before it. Loads do where nothing between them
writes, waits or keeps an order. Ops with a region are never merged.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation

from deuteron.ir.effects import is_pure, is_removable
from deuteron.ir.tt.function import functions_in
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace

Known = dict[Hashable, list[Operation]]  # ops that have all in common but the types of their results


def _key(op: Operation) -> Hashable:
    """What two ops have in common of which one does; the types of their results are left out, to hash which takes
    longer than all else.
    """
    return op.name, op._operands, tuple(op.properties.items()), tuple(op.attributes.items())


def _types(op: Operation) -> list[Attribute]:
    return [result.type for result in op.results]


def _merge(block: Block, values: Known, loads: Known) -> None:
    """`values`: what is computed before, which is as it was afterwards. `loads`: what has been loaded since the last op
    that does more than read.
    """
    loads, added = dict(loads), []
    for op in list(block.ops):
        only_reads = is_removable(op)
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, values, loads if only_reads else {})
        if not only_reads:
            loads.clear()
            continue
        if op.regions or not op.results:
            continue
        alike, types = (values if is_pure(op) else loads).setdefault(_key(op), []), _types(op)
        earlier = next((one for one in alike if _types(one) == types), None)
        if earlier is not None:
            replace(op, earlier.results)
            continue
        alike.append(op)
        added.append(alike)
    for alike in added:
        alike.pop()


class MergeCommonSubexpressions(Optimisation):
    """Replaces pure ops by equal ones that come before them."""

    name = "merge-common-subexpressions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions_in(op):
            _merge(function.regions[0].block, {}, {})
