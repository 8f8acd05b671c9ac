"""Has B of a native product written as it is packed by the nest that computes it.

    for k, n: b1[k, n] = load(...)          for k in steps of 2, n: rows = load(...), load(...)
    pack b1 into lanes                          lanes[k / 2, n] = the rows, interleaved
    dot                                     dot

Where what it computes B from runs along k in memory, as rows of weights do, it reads 16 columns as vectors along k, and
exchanges lanes and vectors. What several products read is packed by each of them, as are transposes, and what is
computed lane by lane.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.items import Nest, dots_of
from deuteron.backend.cpu.plan.products.operand_layout import OperandLayout, grouped
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.tiles.private import nests_of
from deuteron.backend.cpu.plan.vectors.accesses import accesses_of, is_by_lane
from deuteron.backend.cpu.plan.vectors.axes import choose_axis, packed_columns, packed_layout
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.types import shape_of

_VECTOR_BYTES = 64


def pack_in_place(plan: Plan) -> None:
    """Give the copies that can be packed where they are made the layout of what their product packs."""
    nests = {root.value: nest for nest in nests_of(plan.body) for root in nest.roots if isinstance(root, Keep)}
    for item in dots_of(plan.body):
        if item.packed is None or item.b_is_transposed or not _is_private(item.op, item.op.b):
            continue
        nest, layout = nests.get(item.op.b), grouped(item.packed.slot.layout, item.product.group)
        if nest is not None and _can_be_packed(plan, nest, layout):
            slot = item.b.slot
            slot.layout, slot.count, slot.num_bytes = layout, layout.count, layout.count * byte_width(slot.type)
            item.packed = None


def _is_private(op: Operation, operand: SSAValue) -> bool:
    """Whether nothing but this operand of the product is the copy, of one matrix."""
    return len(list(operand.uses)) == 1 and len(shape_of(operand.type)) == 2


def _can_be_packed(plan: Plan, nest: Nest, layout: OperandLayout) -> bool:
    """Whether the nest can be vectorised along rows or columns, without an instruction for each lane; what it packs
    besides has the same panels.
    """
    if nest.is_exclusive or nest.is_scalar or nest.reduced_axis is not None:
        return False
    if (other := packed_layout(nest)) is not None:
        return (other.columns, other.group) == (layout.columns, layout.group)
    accesses = accesses_of(plan, nest)
    if packed_columns(nest, layout, accesses):
        return True
    if any(is_by_lane(access, 1, _VECTOR_BYTES // access.num_bytes) for access in accesses):
        return False
    chosen = choose_axis(plan, nest, _VECTOR_BYTES, 1)
    return chosen.axis == 1 and not (chosen.turned or chosen.quotients.ops or chosen.segments)
