"""Views of shared memory: `ttg.memdesc_trans`, the same bytes as another tile. Nothing is moved.

%t = "ttg.memdesc_trans"(%m) <{order = array<i32: 1, 0>}>
   : (!ttg.memdesc<64x32xf16, ...>) -> !ttg.memdesc<32x64xf16, ...>
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr
from deuteron.ir.types import element_type_of, i32, shape_of


def transposed_type(source: MemDescType, order: Sequence[int]) -> MemDescType:
    """Dimension i of the result is dimension order[i] of the source; its layout likewise."""
    tile, shape = source.tile, shape_of(source.tile)
    encoding = SharedLinearEncodingAttr(tile.encoding.layout.data.transpose(order), tile.encoding.alignment)
    return MemDescType(TensorType(element_type_of(tile), [shape[axis] for axis in order], encoding))


@irdl_op_definition
class MemDescTransOp(IRDLOperation):
    """A tile in shared memory with its dimensions permuted."""

    name = "ttg.memdesc_trans"
    src = operand_def(MemDescType)
    result = result_def(MemDescType)
    order = prop_def(DenseArrayBase)
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, order: Sequence[int]):
        super().__init__(
            operands=[src],
            result_types=[transposed_type(src.type, order)],
            properties={"order": DenseArrayBase.from_list(i32, list(order))},
        )

    def verify_(self) -> None:
        order = self.order.get_values()
        if sorted(order) != list(range(len(shape_of(self.src.type.tile)))):
            raise VerifyException(f"ttg.memdesc_trans: {order} is no permutation of the dimensions")
        if self.result.type != transposed_type(self.src.type, order):
            raise VerifyException(f"ttg.memdesc_trans of {self.src.type} gives {self.result.type}")


def is_view(op: Operation) -> bool:
    """Whether an op gives a descriptor of memory that its first operand describes."""
    operands, results = op._operands, op.results  # `operands` would be a view, and this is asked of most ops
    return bool(operands and results) and _is_descriptor(results[0]) and _is_descriptor(operands[0])


def _is_descriptor(value: SSAValue) -> bool:
    return value.type.__class__ is MemDescType


def viewed(descriptor: SSAValue) -> SSAValue:
    """The descriptor that a view, of views, is made of."""
    while isinstance(descriptor, OpResult) and is_view(descriptor.op):
        descriptor = descriptor.op.operands[0]
    return descriptor


OPS = [MemDescTransOp]
