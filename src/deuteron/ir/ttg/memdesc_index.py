"""One of several buffers: `ttg.memdesc_index`.

    %buffers = "ttg.local_alloc"() : () -> !ttg.memdesc<3x64x32xf16, #shared, #smem, mutable>
    %buffer = "ttg.memdesc_index"(%buffers, %i) : (!ttg.memdesc<3x64x32xf16, ...>, i32) -> !ttg.memdesc<64x32xf16, ...>

The descriptor of several buffers has one dimension more than its layout, which is that of each of them.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.ttg.layout import MemDescType, layout_of
from deuteron.ir.types import element_type_of, i32, shape_of


def buffers_type(buffer: MemDescType, count: int) -> MemDescType:
    """The descriptor of `count` such buffers."""
    held = buffer.tile
    return MemDescType(TensorType(held.element_type, [count, *shape_of(held)], held.encoding))


def num_buffers(type: MemDescType) -> int:
    """How many buffers a descriptor is of; 1 where it is a buffer itself."""
    shape = shape_of(type.tile)
    return shape[0] if len(shape) > len(layout_of(type).shape) else 1


@irdl_op_definition
class MemDescIndexOp(IRDLOperation):
    """The buffer with that number."""

    name = "ttg.memdesc_index"
    src = operand_def(MemDescType)
    index = operand_def(i32)
    result = result_def(MemDescType)
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, index: SSAValue):
        held = src.type.tile
        buffer = TensorType(held.element_type, shape_of(held)[1:], held.encoding)
        super().__init__(operands=[src, index], result_types=[MemDescType(buffer)])

    def verify_(self) -> None:
        source, result = self.src.type.tile, self.result.type.tile
        same = element_type_of(source) == element_type_of(result) and source.encoding == result.encoding
        if not same or shape_of(source)[1:] != shape_of(result):
            raise VerifyException(f"ttg.memdesc_index of {self.src.type} does not give {self.result.type}")


OPS = [MemDescIndexOp]
