"""Finds products of loops of which those of several steps can be computed together: their sum is one with a larger k.

    for ...:                                        for ...:
        acc = tl.dot(a, b, acc)                         a, b are kept, of four steps
                                                        after each fourth step, and the last:
                                                            acc = tl.dot(those of the steps, acc)

Of the sums, which are in memory, is then read and written a quarter. Nothing else in the loop may see them, and the
operands are made in the loop. A product that has no instruction of its own has copies for operands as well.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.core import BlockArgument

from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.cpu.plan.products.marks import mark_steps
from deuteron.backend.cpu.plan.products.operand_layout import MOST_DEPTH, TILE_DEPTH, VECTOR_DEPTH, num_steps
from deuteron.backend.cpu.products.products import NativeProduct, TileProduct
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.builder import Builder
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.shape import BroadcastOp
from deuteron.ir.types import shape_of


def steps_together(op: DotOp, product: NativeProduct | None) -> int:
    """Of how many steps the products are computed together; 1 where they cannot be."""
    if not is_sum_of_loop(op):
        return 1
    width = byte_width(product.element if product else register_type(op.c.type))
    row_bytes = shape_of(op.a.type)[-1] * width
    if isinstance(product, TileProduct):
        return num_steps(row_bytes, TILE_DEPTH)
    return 2 if VECTOR_DEPTH <= row_bytes <= MOST_DEPTH else num_steps(row_bytes, VECTOR_DEPTH)


def copy_operands_of_steps(op: DotOp, steps: int, columns: int) -> None:
    """Give a product copies that are kept of so many steps, of B in panels of so many columns."""
    for number, panel_columns in enumerate((0, columns)):
        operand = op.operands[number]
        copy = BroadcastOp(operand, shape_of(operand.type))
        mark_steps(copy, steps, panel_columns)
        copy.result.name_hint = operand.name_hint
        op.operands[number] = Builder.before(op).value(copy)


def is_sum_of_loop(op: DotOp) -> bool:
    """Whether a loop does nothing with its sums but add this product of what it makes."""
    block, total = op.parent_block(), op.c
    if not isinstance(op.parent_op(), scf.ForOp) or len(shape_of(op.a.type)) != 2:
        return False
    if not isinstance(total, BlockArgument) or total.owner is not block or total.index == 0:
        return False
    is_private = _only_use(total) is op and _only_use(op.result) is block.last_op
    if not is_private or block.last_op.operands[total.index - 1] is not op.result:
        return False
    return all(_is_made_in(operand, block) for operand in (op.a, op.b))


def _only_use(value: SSAValue) -> Operation | None:
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def _is_made_in(value: SSAValue, block: Block) -> bool:
    return value.owner is block or (isinstance(value.owner, Operation) and value.owner.parent_block() is block)
