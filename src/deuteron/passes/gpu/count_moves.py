"""Tiles of indices that a loop advances evenly, carried as the number by which they have moved.

    %k0 = tt.make_range                                    %k0 = tt.make_range
    scf.for iter_args(%k = %k0) {                          scf.for iter_args(%moved = 0) {
      %m = arith.cmpi slt, %k, %n                    ->      %k = arith.addi %k0, (tt.splat %moved)
      tt.expand_dims %m {axis = 0}, %m {axis = 1}            %m = arith.cmpi slt, %k, %n ...
      scf.yield %k + (tt.splat %step)                        scf.yield %moved + %step
    }

What a loop carries has one layout. Of a mask along the columns of one operand and the rows of another one would go
through shared memory, behind a barrier and before the loads that it is for; what is made of scalars and ranges is made
anew in each layout. Indices that are expanded along one axis only stay as they are.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from deuteron.ir.arith import constant_value
from deuteron.ir.around import is_defined_in
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.shape import ExpandDimsOp, MakeRangeOp, SplatOp
from deuteron.ir.ttg.inference import SHAPE_OPS, is_flexible
from deuteron.ir.types import element_type_of, is_tile, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase

SOURCES = MakeRangeOp | SplatOp | arith.ConstantOp


class CountMoves(Optimisation):
    """Replaces carried tiles that are needed along several axes."""

    name = "count-moves"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in nested_ops(op, scf.ForOp):
            for index, start in enumerate(loop.iter_args):
                if _is_row(start) and _is_computed(start) and len(_axes(loop.body.block.args[1 + index])) > 1:
                    _count(loop, index)


def _is_row(value: SSAValue) -> bool:
    return is_tile(value.type) and len(shape_of(value.type)) == 1


def _is_computed(start: SSAValue) -> bool:
    """Whether a tile is made of ranges and scalars alone, by ops without effects."""
    made = reached([start], lambda value: [operand for operand in value.owner.operands if is_tile(operand.type)])
    return all(isinstance(value.owner, SOURCES) or _is_computed_here(value) for value in made)


def _is_computed_here(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_flexible(value.owner)


def _axes(value: SSAValue) -> set[int]:
    """Along which axes a row, and what is computed of it, are expanded."""
    users = (use.operation for row in reached([value], _computed_of) for use in row.uses)
    return {op.axis.value.data for op in users if isinstance(op, ExpandDimsOp)}


def _computed_of(row: SSAValue) -> list[SSAValue]:
    users = (use.operation for use in row.uses)
    return [op.results[0] for op in users if is_flexible(op) and not isinstance(op, SHAPE_OPS)]


def _count(loop: scf.ForOp, index: int) -> None:
    block, start = loop.body.block, loop.iter_args[index]
    row, end, before = block.args[1 + index], block.last_op, Builder.before(loop)
    advance = end.operands[index].owner
    step = _step(row, advance, loop, before)
    if step is None:
        return
    loop.operands[3 + index] = before.constant(0, step.type)
    moved = _as_sum(row, start, step.type, Builder(InsertPoint.at_start(block), loop.location))
    end.operands[index] = Builder.before(end).value(arith.AddiOp(moved, step))
    if not list(advance.results[0].uses):
        erase(advance)
    _as_sum(loop.results[index], start, step.type, Builder.before(loop.next_op))


def _as_sum(row: SSAValue, start: SSAValue, scalar: Attribute, b: Builder) -> SSAValue:
    """Make a number of a row, and use what it is added to in its place."""
    name = row.name_hint
    moved = Rewriter.replace_value_with_new_type(row, scalar)
    splat = b.value(SplatOp(moved, shape_of(start.type)))
    total = b.value(arith.AddiOp(start, splat))
    moved.replace_uses_with_if(total, lambda use: use.operation is not splat.owner)
    moved.name_hint, total.name_hint = None, name
    return moved


def _step(row: SSAValue, advance: object, loop: scf.ForOp, before: Builder) -> SSAValue | None:
    """By how much every iteration advances a row: a scalar of before the loop."""
    if not isinstance(advance, arith.AddiOp) or row not in advance.operands:
        return None
    step = advance.rhs if advance.lhs is row else advance.lhs
    number = constant_value(step)
    if number is not None:
        return before.constant(number, element_type_of(row.type))
    scalar = step.owner.src if isinstance(step.owner, SplatOp) else None
    return scalar if scalar is not None and not is_defined_in(scalar, loop) else None
