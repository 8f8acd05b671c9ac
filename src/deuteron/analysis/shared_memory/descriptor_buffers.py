"""The shared memory that a block of a tensor goes through.

block_buffer(tensor<128x64xf16>)           !ttg.memdesc<128x64xf16, panels of 128 bytes, swizzled>
load_buffer(%x = "tt.descriptor_load")     that of the dot's operand which the block becomes, if TMA can fill it
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from deuteron.ir.tt.descriptor import DescriptorLoadOp
from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr
from deuteron.ir.ttg.shared import LocalAllocOp
from deuteron.ir.ttng.tma import box_of
from deuteron.ir.types import byte_width_of, element_type_of, num_elements_of, shape_of
from deuteron.layout.linear import LinearLayout
from deuteron.layout.shared import SWIZZLE_ALIGNMENT, mma_shared, row_major
from deuteron.layout.tensor_box import COPY_ALIGNMENT, SWIZZLES

MIN_SPAN = min(filter(None, SWIZZLES))


def block_buffer(tile: Attribute) -> MemDescType:
    """Swizzled as dots read it, so that neighbouring rows are in different banks; else row by row."""
    shape, size = shape_of(tile), byte_width_of(tile)
    if len(shape) > 1 and shape[-1] * size >= MIN_SPAN:
        swizzled = _buffer(tile, mma_shared(shape, len(shape) - 1, size), SWIZZLE_ALIGNMENT)
        if box_of(swizzled) is not None:
            return swizzled
    return _buffer(tile, row_major(shape), COPY_ALIGNMENT)


def _buffer(tile: Attribute, layout: LinearLayout, alignment: int) -> MemDescType:
    encoding = SharedLinearEncodingAttr(layout, alignment)
    return MemDescType(TensorType(element_type_of(tile), shape_of(tile), encoding))


def load_buffer(load: DescriptorLoadOp) -> MemDescType:
    """The type of an allocation that takes the block and that TMA can fill; else one of its own."""
    for use in load.result.uses:
        if isinstance(use.operation, LocalAllocOp) and box_of(use.operation.result.type) is not None:
            return use.operation.result.type
    return block_buffer(load.result.type)


def block_bytes(buffer: MemDescType) -> int:
    """What a copy brings, whatever of it is in bounds."""
    return byte_width_of(buffer.tile) * num_elements_of(buffer.tile)
