"""Computes what is computed twice once: a pure op with the operands and attributes of an earlier one takes its results.

    %a = "tt.splat"(%n) : (i32) -> tensor<64xi32>              %a = "tt.splat"(%n)
    %b = "tt.splat"(%n) : (i32) -> tensor<64xi32>       ->     %c = "arith.addi"(%a, %a)
    %c = "arith.addi"(%a, %b)

An op in the body of a loop or of an `if` may take the results of one before it. Loads are never merged: memory may have
changed. Nor are ops with a region.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.effects import is_pure
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace


def _key(op: Operation) -> Hashable:
    return (
        op.name,
        tuple(op.operands),
        tuple(result.type for result in op.results),
        tuple(op.properties.items()),
        tuple(op.attributes.items()),
    )


def _merge(block: Block, known: dict[Hashable, tuple[SSAValue, ...]]) -> None:
    """`known`: what is computed before, which is as it was afterwards."""
    added = []
    for op in list(block.ops):
        for region in op.regions:
            for inner in region.blocks:
                _merge(inner, known)
        if op.regions or not op.results or not is_pure(op):
            continue
        key = _key(op)
        earlier = known.get(key)
        if earlier is None:
            known[key] = tuple(op.results)
            added.append(key)
        else:
            replace(op, earlier)
    for key in added:
        del known[key]


@dataclass(frozen=True)
class MergeCommonSubexpressions(Optimisation):
    """Replaces pure ops by equal ones that come before them."""

    name = "merge-common-subexpressions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            _merge(function.regions[0].block, {})
