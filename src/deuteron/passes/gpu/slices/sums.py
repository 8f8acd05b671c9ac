"""What a loop over slices carries from one to the next: the sums of a dot that is cut along K, and what a reduction has
combined so far that is cut along its dimension, element by element. It is reduced once, after the loop.

    %s = tt.reduce %x {axis = 0} ({ max })      ->      %t = scf.for %i = 0 to 16 iter_args(%a = 0) {
                                                          %y = slice %i of %x
                                                          %c = arith.maxnumf %a, %y
                                                          %b = arith.select (%i == 0), %y, %c
                                                          scf.yield %b
                                                        }
                                                        %s = tt.reduce %t {axis = 0} ({ max })

A reduction may be done in any order (`order-reductions`). No element is known that changes nothing, so the first slice
is taken as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.ttg.layout import layout_of, with_layout
from deuteron.ir.ttg.private import slice_type
from deuteron.ir.types import element_type_of, i32, shape_of, tile
from deuteron.passes.rewrite import Values, clone_on


def combines_elements(op: ReduceOp) -> bool:
    """Whether what combines two elements can combine two tiles."""
    return all(is_elementwise(inner) and not inner.regions for inner in list(op.combine.block.ops)[:-1])


def first_sums(b: Builder, op: DotOp | ReduceOp, count: int) -> list[SSAValue]:
    """What the loop of an op that is cut into `count` slices begins with."""
    if isinstance(op, DotOp):
        return [op.c]
    return [b.constant(0, slice_type(src.type, op.axis.value.data, count)) for src in op.srcs]


def next_sums(
    b: Builder, op: DotOp | ReduceOp, index: SSAValue, before: list[SSAValue], slices: list[SSAValue]
) -> list[SSAValue]:
    """What the iteration of a slice gives the next one; `before`: what it was given; `slices`: of the op's operands."""
    if isinstance(op, DotOp):
        return [b.value(clone_on(op, [*slices[:2], *before]))]
    combined = _combined(b, op, [*before, *slices])
    is_first = b.value(CmpIOp(index, b.constant(0, i32), "eq"))
    return [b.value(SelectOp(is_first, new, both)) for new, both in zip(slices, combined, strict=True)]


def whole_sums(b: Builder, op: DotOp | ReduceOp, totals: list[SSAValue]) -> Sequence[SSAValue]:
    """The results of the op, of what the loop ends with."""
    return totals if isinstance(op, DotOp) else b.insert(clone_on(op, totals)).results


def _combined(b: Builder, op: ReduceOp, tiles: Sequence[SSAValue]) -> list[SSAValue]:
    block, values = op.combine.block, Values()
    values.update(zip(block.args, tiles, strict=True))
    *inner, outcome = block.ops
    for one in inner:
        values.update(zip(one.results, _on_tiles(b, one, values, tiles[0].type), strict=True))
    return [_as_tile(b, values.of(value), tiles[0].type) for value in outcome.operands]


def _on_tiles(b: Builder, op: Operation, values: Values, like: TensorType) -> Sequence[SSAValue]:
    """The results of an op of scalars, of tiles."""
    if isinstance(op, arith.ConstantOp):
        return [b.insert(op.clone()).result]
    operands = [_as_tile(b, values.of(operand), like) for operand in op.operands]
    types = [_tile_like(result.type, like) for result in op.results]
    clone = type(op).create(
        operands=operands, result_types=types, properties=dict(op.properties), attributes=dict(op.attributes)
    )
    with b.located(op.location):
        return b.insert(clone).results


def _as_tile(b: Builder, value: SSAValue, like: TensorType) -> SSAValue:
    """A scalar from outside, or a constant, repeated."""
    if shape_of(value.type) == shape_of(like):
        return value
    splat = SplatOp.create(operands=[value], result_types=[_tile_like(value.type, like)])
    return b.value(splat)


def _tile_like(element: Attribute, like: TensorType) -> Attribute:
    return with_layout(tile(element_type_of(element), shape_of(like)), layout_of(like))
