"""Drops dimensions of extent 1 from what is loaded and stored through tensor descriptors.

    %x = "tt.descriptor_load"(%d, %z, %i, %j) : tensor<1x64x32xf16>
    %y = "tt.reshape"(%x) : tensor<64x32xf16>                       ->   %y = "tt.descriptor_load"(%d, %z, %i, %j)
    %v = "tt.expand_dims"(%u) <{axis = 0}>
    "tt.descriptor_store"(%d, %v, %z, %i, %j)                       ->   "tt.descriptor_store"(%d, %u, %z, %i, %j)

A dot reads a block from where it was copied to then, for nothing is between them. Of the block only dimensions in front
can be left out, so that of a descriptor that has others of extent 1 these become the first ones:

    shape [z, n, h, d], block 1x64x1x32    ->    shape [z, h, n, d], block 1x1x64x32

Loads of which something else is needed, too, stay as they are.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import (
    BlockAccess,
    DescriptorLoadOp,
    MakeTensorDescriptorOp,
    TensorDescType,
)
from deuteron.ir.tt.memory import Padding
from deuteron.ir.tt.shape import ExpandDimsOp, ReshapeOp
from deuteron.ir.types import element_type_of, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace


class DropUnitDims(Optimisation):
    """Drops the dimensions of extent 1 of blocks that kernels reshape."""

    name = "drop-unit-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        turned: dict[SSAValue, SSAValue] = {}
        for access in nested_ops(op, BlockAccess):
            if isinstance(access, DescriptorLoadOp):
                _drop_from_load(access, turned)
            else:
                _drop_from_store(access, turned)


def _drop_from_load(op: DescriptorLoadOp, turned: dict[SSAValue, SSAValue]) -> None:
    users = [use.operation for use in op.result.uses]
    if not users or not all(isinstance(user, ReshapeOp) and _is_without_ones(user.result, op) for user in users):
        return
    if _turn(op, turned):
        loaded = Rewriter.replace_value_with_new_type(op.result, users[0].result.type)
        for user in users:
            replace(user, [loaded])


def _drop_from_store(op: BlockAccess, turned: dict[SSAValue, SSAValue]) -> None:
    source = _without_ones(op.src, op)
    if source is not None and _turn(op, turned):
        op.operands = [op.desc, source, *op.indices]


def _without_ones(value: SSAValue, access: BlockAccess) -> SSAValue | None:
    """What a block that is stored was before it had dimensions of extent 1, or None."""
    while not _is_without_ones(value, access):
        if not isinstance(value.owner, ExpandDimsOp | ReshapeOp):
            return None
        value = value.owner.src
    return value if value is not access.operands[1] else None


def _is_without_ones(value: SSAValue, access: BlockAccess) -> bool:
    """Whether a tile is a block without all of its dimensions of extent 1, of which there are some."""
    block = shape_of(access.desc.type.tile)
    return 1 in block and shape_of(value.type) == tuple(extent for extent in block if extent != 1) != ()


def _turn(op: BlockAccess, turned: dict[SSAValue, SSAValue]) -> bool:
    """Let an access be of a descriptor whose block begins with the dimensions of extent 1; whether there is one."""
    block = shape_of(op.desc.type.tile)
    order = sorted(range(len(block)), key=lambda axis: block[axis] != 1)
    if order == list(range(len(block))):
        return True
    made = op.desc.owner
    if not isinstance(made, MakeTensorDescriptorOp):
        return False
    if op.desc not in turned:
        turned[op.desc] = _turned(made, order)
    op.operands = [turned[op.desc], *op.operands[1 : -len(block)], *(op.indices[axis] for axis in order)]
    return True


def _turned(made: MakeTensorDescriptorOp, order: list[int]) -> SSAValue:
    """A descriptor of the same tensor, with its dimensions in another order. The last one stays the last."""
    tile = made.result.type.tile
    type = TensorDescType(TensorType(element_type_of(tile), [shape_of(tile)[axis] for axis in order]))
    shape, strides = ([values[axis] for axis in order] for values in (made.shape, made.strides))
    padding = Padding.NAN if made.pads_with_nan else Padding.ZERO
    return Builder.after(made).value(MakeTensorDescriptorOp(made.base, shape, strides, type, padding))
