"""Memory of each thread, for tiles of which loops compute slices: `ttg.private_alloc`, `private_store`, `private_load`,
`private_view`.

    %m = "ttg.private_alloc"() : () -> !ttg.private<tensor<64x64xf32, #L>, 0, 16>
    "ttg.private_store"(%x, %m) : (tensor<64x64xf32, #L>, ...) -> ()                  the whole tile
    %s = "ttg.private_load"(%m, %i) : (..., i32) -> tensor<4x64xf32, #S>              one of 16 slices along dimension 0
    %v = "ttg.private_view"(%m) : (...) -> !ttg.private<tensor<64x64xf32, #L>, 1, 8>  the same memory, in other slices
    %w = "ttg.private_view"(%m, %i) : (...) -> !ttg.private<tensor<4x64xf32, #S>, 1, 8>  that of a slice, in slices

A thread stores and loads its own registers of a tile (`layout/slices.py`), so that nobody waits.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    param_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.builder import Builder
from deuteron.ir.effects import OTHER, Effect, reads, writes
from deuteron.ir.ttg.layout import layout_of, with_layout
from deuteron.ir.types import element_type_of, i32, tile
from deuteron.layout.linear import log2
from deuteron.layout.slices import slice_layout, sliceable_bits


@irdl_attr_definition
class PrivateType(ParametrizedAttribute, TypeAttribute):
    """A tile, with its layout, in memory of each thread, in `count` slices along the dimension `axis`."""

    name = "ttg.private"

    tile: TensorType = param_def()
    axis: IntAttr = param_def()
    count: IntAttr = param_def()

    def __init__(self, tile: TensorType, axis: int | IntAttr, count: int | IntAttr):
        numbers = (IntAttr(number) if isinstance(number, int) else number for number in (axis, count))
        super().__init__(tile, *numbers)

    def verify(self) -> None:
        count, bits = self.count.data, sliceable_bits(layout_of(self.tile), self.axis.data)
        if count < 1 or count & (count - 1) or log2(count) > len(bits):
            raise VerifyException(f"ttg.private: {self.tile} has no {count} slices along dimension {self.axis.data}")

    @property
    def slice(self) -> Attribute:
        """The type of one slice."""
        return slice_type(self.tile, self.axis.data, self.count.data)


def slice_type(whole: TensorType, axis: int, count: int) -> Attribute:
    """The tile type of one of `count` slices along a dimension."""
    layout = slice_layout(layout_of(whole), axis, count)
    return with_layout(tile(element_type_of(whole), layout.shape), layout)


@irdl_op_definition
class PrivateAllocOp(IRDLOperation):
    """Memory for a tile, of each thread."""

    name = "ttg.private_alloc"
    result = result_def(PrivateType)

    def __init__(self, type: PrivateType):
        super().__init__(result_types=[type])

    def effects(self) -> list[Effect]:
        return [writes(OTHER, self.result)]


@irdl_op_definition
class PrivateStoreOp(IRDLOperation):
    """Stores a tile, or the slice number `index` of it."""

    name = "ttg.private_store"
    src = operand_def()
    dst = operand_def(PrivateType)
    index = opt_operand_def(i32)

    def __init__(self, src: SSAValue, dst: SSAValue, index: SSAValue | None = None):
        super().__init__(operands=[src, dst, [index] if index else []])

    def effects(self) -> list[Effect]:
        return [writes(OTHER, self.dst)]

    def verify_(self) -> None:
        _check(self, self.dst.type, self.src.type)


@irdl_op_definition
class PrivateLoadOp(IRDLOperation):
    """Loads a tile, or the slice number `index` of it."""

    name = "ttg.private_load"
    src = operand_def(PrivateType)
    index = opt_operand_def(i32)
    result = result_def()

    def __init__(self, src: SSAValue, index: SSAValue | None = None):
        held = src.type
        super().__init__(operands=[src, [index] if index else []], result_types=[held.slice if index else held.tile])

    def effects(self) -> list[Effect]:
        return [reads(OTHER, self.src)]

    def verify_(self) -> None:
        _check(self, self.src.type, self.result.type)


@irdl_op_definition
class PrivateViewOp(IRDLOperation):
    """The memory of a tile, or of the slice number `index` of it, of which slices along another dimension, or as many
    others, are loaded and stored.
    """

    name = "ttg.private_view"
    src = operand_def(PrivateType)
    index = opt_operand_def(i32)
    result = result_def(PrivateType)
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, type: PrivateType, index: SSAValue | None = None):
        super().__init__(operands=[src, [index] if index else []], result_types=[type])

    def verify_(self) -> None:
        _check(self, self.src.type, self.result.type.tile)


def view_of(b: Builder, memory: SSAValue, type: PrivateType, index: SSAValue | None = None) -> SSAValue:
    """Memory in the slices of a type, which is as it is where these are its own."""
    return memory if memory.type == type and index is None else b.value(PrivateViewOp(memory, type, index))


def _check(op: PrivateStoreOp | PrivateLoadOp | PrivateViewOp, memory: PrivateType, moved: Attribute) -> None:
    expected = memory.slice if op.index is not None else memory.tile
    if moved != expected:
        raise VerifyException(f"{op.name}: the memory holds {expected}, got {moved}")


ATTRIBUTES = [PrivateType]
OPS = [PrivateAllocOp, PrivateStoreOp, PrivateLoadOp, PrivateViewOp]
