"""Gives products that the processor has operands in its own format: copies, which the product alone reads.

    %c = tt.dot %a, %b                      %a1 = tt.broadcast %a {cpu.kept_as = "i16"}
                                            %b1 = tt.broadcast %b {cpu.kept_as = "i16"}
                                            %c = tt.dot %a1, %b1 {cpu.product = "bf16 pairs"}
    %t = tt.trans %b;  tt.dot %a, %t        tt.dot %a1, %b1 {cpu.b_is_transposed}, if %b is in memory anyway
    tt.dot of int8                          %a1 is a copy of %a ^ -128: 128 more, without a sign

A copy stands where its source is made, and serves all products that want it: what is made before a loop is copied
before it. Of the transpose of A a copy is transposed. Where products of several steps of a loop are computed together
(`steps_together.py`), A is kept in rows of all of them.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.ops.shape import is_transpose
from deuteron.backend.cpu.plan.products.marks import mark_operand, mark_product, mark_steps, operand_type, steps_of
from deuteron.backend.cpu.plan.tiles.views import is_view
from deuteron.backend.cpu.products.products import NativeProduct
from deuteron.ir.builder import Builder
from deuteron.ir.reached import reached
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import BroadcastOp, TransOp
from deuteron.ir.types import is_tile, shape_of


def use_native_product(op: DotOp, product: NativeProduct, steps: int) -> None:
    """Mark a product and replace its operands. `steps`: of how many the products are computed together."""
    is_transposed = is_transpose(op.b) and not _is_computed_for(op.b)
    mark_product(op, product, is_transposed)
    op.operands[1] = _copy(op.b.owner.src if is_transposed else op.b, product, 0)
    if is_transpose(op.a):
        source = _copy(op.a.owner.src, product, product.excess)
        op.operands[0] = _marked(Builder.before(op), TransOp(source, (1, 0)), product, steps)
    else:
        op.operands[0] = _copy(op.a, product, product.excess, steps)


def _is_computed_for(transpose: SSAValue) -> bool:
    """Whether a product alone reads a tile, which is loaded or computed of what is: it is packed as it is computed."""
    tiles = transpose, transpose.owner.src
    return all(len(list(tile.uses)) == 1 for tile in tiles) and _is_computed(tiles[1])


def _is_computed(tile: SSAValue) -> bool:
    """Whether a tile is computed element by element, of nothing that is in memory anyway."""

    def sources(value: SSAValue) -> list[SSAValue]:
        operands = () if isinstance(value.owner, LoadOp) else value.owner.operands
        return [operand for operand in operands if is_tile(operand.type)]

    return all(_is_computed_by_element(value.owner) for value in reached([tile], sources))


def _is_computed_by_element(op: Operation | Block) -> bool:
    return isinstance(op, Operation) and ops.declared(op).is_lazy(op) and not is_view(op)


def _copy(value: SSAValue, product: NativeProduct, excess: int, steps: int = 1) -> SSAValue:
    shape = shape_of(value.type)
    if not excess:
        known = [use.operation for use in value.uses if _is_copy(use.operation, product, steps)]
        return known[0].result if known else _marked(_after(value), BroadcastOp(value, shape), product, steps)
    builder = _after(value)
    unsigned = builder.value(arith.XOrIOp(value, builder.constant(-excess, value.type)))
    return _marked(builder, BroadcastOp(unsigned, shape), product, steps)


def _is_copy(op: Operation, product: NativeProduct, steps: int) -> bool:
    return isinstance(op, BroadcastOp) and operand_type(op.result) == product.element and steps_of(op) == steps


def _after(value: SSAValue) -> Builder:
    """Builds where a value is made."""
    if isinstance(value.owner, Operation):
        return Builder.after(value.owner)
    return Builder(InsertPoint.at_start(value.owner), value.location)


def _marked(builder: Builder, op: BroadcastOp | TransOp, product: NativeProduct, steps: int = 1) -> SSAValue:
    mark_operand(op, product)
    mark_steps(op, steps)
    op.results[0].name_hint = op.operands[0].name_hint
    return builder.value(op)
