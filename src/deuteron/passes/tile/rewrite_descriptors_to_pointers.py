"""Rewrites accesses through tensor descriptors to accesses through pointers, with masks for what is out of bounds.

    %d = "tt.make_tensor_descriptor"(%p, %m, %n, %s, %1)       %q = %p + %i * %s + %j
    %x = "tt.descriptor_load"(%d, %i, %j)                 ->   %x = "tt.load"(%q + rows * %s + columns,
                                                                              %i + rows < %m & %j + columns < %n, 0.0)

The offset of the block is a scalar, so that what the tile adds to it does not change in a loop. One unsigned comparison
for each dimension also finds offsets below zero. Reductions become relaxed atomics. Where the target has TMA, what that
can do stays (see analysis/tma_accesses.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from deuteron.analysis.tma_accesses import tma_accesses
from deuteron.errors import CompilationError
from deuteron.ir.arith import CmpIOp
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.location import from_attribute
from deuteron.ir.tt.atomic import AtomicRMWOp, MemorySemantic
from deuteron.ir.tt.convert import FpToFpOp, RoundingMode
from deuteron.ir.tt.descriptor import (
    BlockAccess,
    DescriptorLoadOp,
    DescriptorReduceKind,
    DescriptorReduceOp,
    DescriptorStoreOp,
    MakeTensorDescriptorOp,
    atomic_kind,
    descriptor_of,
)
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import AddPtrOp, LoadOp, StoreOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp
from deuteron.ir.types import bit_width_of, element_type_of, f32, i64, shape_of, tile
from deuteron.passes.rewrite import erase, replace


@dataclass(frozen=True)
class RewriteDescriptorsToPointers(ModulePass):
    """Replaces descriptors and the accesses through them but those that TMA does, of blocks of at most `tma_bytes`."""

    name = "rewrite-descriptors-to-pointers"

    tma_bytes: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kept = self._kept(op)
        for access in [inner for inner in op.walk() if isinstance(inner, BlockAccess) and inner not in kept]:
            rewrite_access(access)
        for made in [inner for inner in op.walk() if isinstance(inner, MakeTensorDescriptorOp)]:
            if not list(made.result.uses):
                erase(made)

    def _kept(self, module: ModuleOp) -> set[Operation]:
        functions = [op for op in module.ops if isinstance(op, FuncOp)] if self.tma_bytes else []
        return {access for func in functions for access in tma_accesses(func, self.tma_bytes)}


def rewrite_access(op: BlockAccess) -> None:
    """Replace an access through a descriptor by one through pointers."""
    try:
        made = descriptor_of(op)
    except VerifyException as error:
        raise CompilationError(f"{error}. Make it where it is used.", *from_attribute(op.location)) from error
    b = Builder.before(op)
    pointers, mask = _pointers(b, made, op), _mask(b, made, op)
    if isinstance(op, DescriptorLoadOp):
        replace(op, [b.value(LoadOp(pointers, mask, _padding(b, made, op.result.type)))])
        return
    if isinstance(op, DescriptorStoreOp):
        b.insert(StoreOp(pointers, op.src, mask))
    else:
        assert isinstance(op, DescriptorReduceOp)
        kind = atomic_kind(DescriptorReduceKind(op.kind.value.data), op.desc.type)
        b.insert(AtomicRMWOp(kind, pointers, op.src, mask, MemorySemantic.RELAXED))
    erase(op)


def _pointers(b: Builder, made: MakeTensorDescriptorOp, op: BlockAccess) -> SSAValue:
    shape, pointer = shape_of(op.desc.type.tile), made.base
    for index, stride in zip(op.indices, made.strides, strict=True):
        offset = b.value(arith.MuliOp(b.value(ExtSIOp(index, i64)), stride))
        pointer = b.value(AddPtrOp(pointer, offset))
    pointers = b.value(SplatOp(pointer, shape))
    for axis, stride in enumerate(made.strides):
        steps = b.value(ExtSIOp(_range(b, shape[axis]), tile(i64, [shape[axis]])))
        offsets = b.value(arith.MuliOp(steps, b.value(SplatOp(stride, [shape[axis]]))))
        pointers = b.value(AddPtrOp(pointers, _along(b, offsets, axis, shape)))
    return pointers


def _mask(b: Builder, made: MakeTensorDescriptorOp, op: BlockAccess) -> SSAValue:
    shape, mask = shape_of(op.desc.type.tile), None
    for axis, (index, size) in enumerate(zip(op.indices, made.shape, strict=True)):
        extent = [shape[axis]]
        places = b.value(arith.AddiOp(b.value(SplatOp(index, extent)), _range(b, shape[axis])))
        inside = _along(b, b.value(CmpIOp(places, b.value(SplatOp(size, extent)), "ult")), axis, shape)
        mask = inside if mask is None else b.value(arith.AndIOp(mask, inside))
    assert mask is not None
    return mask


def _range(b: Builder, extent: int) -> SSAValue:
    """0, 1, 2 ..."""
    return b.value(MakeRangeOp(0, extent))


def _along(b: Builder, values: SSAValue, axis: int, shape: tuple[int, ...]) -> SSAValue:
    """Values along an axis, repeated along the others."""
    for other in range(len(shape)):
        if other != axis:
            values = b.value(ExpandDimsOp(values, other))
    return values if len(shape) == 1 else b.value(BroadcastOp(values, shape))


def _padding(b: Builder, made: MakeTensorDescriptorOp, type: Attribute) -> SSAValue:
    if not made.pads_with_nan:
        return b.constant(0, type)
    element = element_type_of(type)
    number = b.constant(float("nan"), f32 if bit_width_of(element) == 8 else element)
    if bit_width_of(element) == 8:
        number = b.value(FpToFpOp(number, element, RoundingMode.RTNE))
    return b.value(SplatOp(number, shape_of(type)))
