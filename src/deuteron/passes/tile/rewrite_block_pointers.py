"""Rewrites loads and stores through block pointers to those through tiles of pointers, with masks for what is checked.

    %p = "tt.make_tensor_ptr"(%a, %m, %n, %s, %one, %i, %j)        %q = %a + %i * %s + %j
    %x = "tt.load"(%p) <{boundaryCheck = array<i32: 0>}>      ->   %x = "tt.load"(%q + rows * %s + columns,
                                                                                  %i + rows < max(%m, 0), 0.0)

Dimensions that an access does not check are trusted. What is out of bounds loads as 0 where no padding is asked for,
too. After `carry-parts`, which leaves each block pointer where it is used.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.block_pointer import MakeTensorPtrOp, is_wide
from deuteron.ir.tt.memory import LoadOp, StoreOp, checked_axes
from deuteron.ir.types import block_of, i32, i64, is_block_pointer, shape_of
from deuteron.passes.rewrite import erase, replace
from deuteron.passes.tile.block_addresses import at_least_0, block_mask, block_pointers, padding_of


class RewriteBlockPointers(ModulePass):
    """Replaces block pointers, which control flow does not carry."""

    name = "rewrite-block-pointers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for access in nested_ops(op, LoadOp | StoreOp):
            if is_block_pointer(access.ptr.type):
                _rewrite(access)
        for made in nested_ops(op, MakeTensorPtrOp):
            erase(made)


def _rewrite(op: LoadOp | StoreOp) -> None:
    """Through a tile of pointers instead."""
    made, b = op.ptr.owner, Builder.before(op)
    assert isinstance(made, MakeTensorPtrOp)
    shape = shape_of(block_of(op.ptr.type))
    pointers = block_pointers(b, made.base, made.offsets, made.strides, shape)
    sizes = {axis: _size(b, made.shape[axis], is_wide(made.offsets[axis])) for axis in sorted(set(checked_axes(op)))}
    mask = block_mask(b, made.offsets, sizes, shape)
    if isinstance(op, StoreOp):
        new = StoreOp(pointers, op.value, mask)
    else:
        other = padding_of(b, op.result.type, op.pads_with_nan) if mask is not None else None
        new = LoadOp(pointers, mask, other)
        new.properties["isVolatile"] = op.is_volatile
    new.properties |= {"cache": op.cache, "evict": op.evict}
    b.insert(new)
    replace(op, new.results)


def _size(b: Builder, size: SSAValue, wide: bool) -> SSAValue:
    """How many elements there are, none where that is negative: in 32 bits where it and the offset fit."""
    number = constant_value(size)
    if number is not None:
        return b.constant(max(number, 0), i64 if wide or number >= 2**31 else i32)
    if not wide and isinstance(size.owner, ExtSIOp) and size.owner.input.type == i32:
        size = size.owner.input
    return at_least_0(b, size)
