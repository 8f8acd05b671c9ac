"""Reduces several tiles at once, where warps have to wait for each other's parts.

    %a = "tt.reduce"(%x) ({ add })                    %a, %b = "tt.reduce"(%x, %y) ({ add; max })
    %c = "arith.divf"(%a, %n)                  ->     %c = "arith.divf"(%a, %n)
    %b = "tt.reduce"(%y) ({ max })

They then wait once, instead of once for each tile. Tiles have one layout, and no result is needed for another.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from deuteron.analysis.shared_memory.warp_parts import num_parts
from deuteron.ir.builder import Builder
from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.reduce import ReduceOp, ReduceReturnOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase

# So many reductions before one are tried: with all of them the time grew with the square of their number, and more.
MOST_TRIED = 8


class MergeReductions(Optimisation):
    """Merges reductions that do not depend on each other."""

    name = "merge-reductions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            blocks = dict.fromkeys(reduce.parent for reduce in nested_ops(func, ReduceOp) if _crosses_warps(reduce))
            for block in blocks:
                _merge_in(block)


def _crosses_warps(op: ReduceOp) -> bool:
    return num_parts(op) > 1


def _merge_in(block: Block) -> None:
    """One after the other is merged with the last one before it that it can be merged with."""
    earlier: list[ReduceOp] = []
    for op in list(block.ops):
        if isinstance(op, scf.ForOp | scf.WhileOp | scf.IfOp):
            earlier = []
        if not isinstance(op, ReduceOp) or not _crosses_warps(op):
            continue
        first = next((one for one in reversed(earlier) if _are_alike(one, op) and _move_dependents(one, op)), None)
        merged = _merge(first, op) if first is not None else op
        earlier = [*(one for one in earlier if one is not first), merged][-MOST_TRIED:]


def _are_alike(first: ReduceOp, second: ReduceOp) -> bool:
    return first.axis == second.axis and layout_of(first.srcs[0].type) == layout_of(second.srcs[0].type)


def _move_dependents(first: ReduceOp, second: ReduceOp) -> bool:
    """Move what needs the first after the second, if it may be."""
    dependents, values = [], set(first.results)
    op = first.next_op
    while op is not second:
        if _reads(op, values):
            dependents.append(op)
            values.update(op.results)
        op = op.next_op
    if _reads(second, values) or not all(map(is_pure, dependents)):
        return False
    for dependent in reversed(dependents):
        dependent.detach()
        second.parent.insert_op_after(dependent, second)
    return True


def _reads(op: Operation, values: set) -> bool:
    return any(operand in values for inner in nested_ops(op) for operand in inner.operands)


def _merge(first: ReduceOp, second: ReduceOp) -> ReduceOp:
    """In the place of the second, behind which is all that needs the first."""
    b, both = Builder.before(second), (first, second)
    merged = b.insert(
        ReduceOp.create(
            operands=[src for op in both for src in op.srcs],
            result_types=[result.type for op in both for result in op.results],
            properties=dict(second.properties),
            regions=[Region(_joined_function(first, second))],
        )
    )
    for new, old in zip(merged.results, [*first.results, *second.results], strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    erase(first)
    erase(second)
    return merged


def _joined_function(*ops: ReduceOp) -> Block:
    """Both functions side by side: first the arguments of one side, then those of the other."""
    sides = [[argument for op in ops for argument in _side(op, side)] for side in range(2)]
    block = Block(arg_types=[argument.type for side in sides for argument in side])
    values = dict(zip((argument for side in sides for argument in side), block.args, strict=True))
    outcomes = []
    for op in ops:
        *inner, outcome = op.combine.block.ops
        for one in inner:
            block.add_op(one.clone(values))
        outcomes += [values.get(value, value) for value in outcome.operands]
    block.add_op(ReduceReturnOp(outcomes))
    return block


def _side(op: ReduceOp, side: int) -> tuple:
    count = len(op.srcs)
    return op.combine.block.args[side * count : (side + 1) * count]
