"""Block pointers: where in a tensor a block lies that `tt.load` and `tt.store` access.

    %p = "tt.make_tensor_ptr"(%base, %m, %n, %stride, %one, %i, %j) <{order = array<i32: 1, 0>}>
             : (!tt.ptr<f16>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<64x32xf16>>
    %q = "tt.advance"(%p, %zero, %step) : (!tt.ptr<tensor<64x32xf16>>, i32, i32) -> !tt.ptr<tensor<64x32xf16>>
    %x = "tt.load"(%q) <{boundaryCheck = array<i32: 0, 1>, padding = 1 : i32, ...}>
             : (!tt.ptr<tensor<64x32xf16>>) -> tensor<64x32xf16>

Shape, strides and offsets count elements; any stride may be any number. The order says which dimension is contiguous,
for whoever wants a hint: strides that are known say it better. An access is checked in the dimensions that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    SameVariadicOperandSize,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import PointerType, block_of, i32, i64, is_block_pointer, shape_of


@irdl_op_definition
class MakeTensorPtrOp(IRDLOperation):
    """Points to the block at these offsets of a tensor."""

    name = "tt.make_tensor_ptr"
    base = operand_def(PointerType)
    shape = var_operand_def(i64)
    strides = var_operand_def(i64)
    offsets = var_operand_def(IntegerType)
    result = result_def(PointerType)
    order = prop_def(DenseArrayBase)
    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure())

    def __init__(
        self,
        base: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        type: PointerType,
        order: Sequence[int],
    ):
        super().__init__(
            operands=[base, list(shape), list(strides), list(offsets)],
            result_types=[type],
            properties={"order": DenseArrayBase.from_list(i32, list(order))},
        )

    def verify_(self) -> None:
        type = self.result.type
        if not is_block_pointer(type):
            raise VerifyException(f"{self.name} gives a pointer to a block, got {type}")
        block = block_of(type)
        if len(self.shape) != len(shape_of(block)):
            raise VerifyException(f"{self.name} of {type} has {len(self.shape)} sizes, strides and offsets")
        if self.base.type.pointee != block.element_type:
            raise VerifyException(f"{self.name}: {self.base.type} does not point to elements of {type}")
        _check_offsets(self)
        if sorted(self.order.get_values()) != list(range(len(self.shape))):
            raise VerifyException(f"{self.name}: {list(self.order.get_values())} does not order its dimensions")


@irdl_op_definition
class AdvanceOp(IRDLOperation):
    """Points to the block that lies so many elements further in each dimension."""

    name = "tt.advance"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    ptr = operand_def(_T)
    offsets = var_operand_def(IntegerType)
    result = result_def(_T)
    traits = traits_def(Pure())

    def __init__(self, ptr: SSAValue, offsets: Sequence[SSAValue]):
        super().__init__(operands=[ptr, list(offsets)], result_types=[ptr.type])

    def verify_(self) -> None:
        type: Attribute = self.ptr.type
        if not is_block_pointer(type) or len(self.offsets) != len(shape_of(block_of(type))):
            raise VerifyException(f"{self.name} of {type} has {len(self.offsets)} offsets")
        _check_offsets(self)


def _check_offsets(op: MakeTensorPtrOp | AdvanceOp) -> None:
    if any(offset.type not in (i32, i64) for offset in op.offsets):
        raise VerifyException(f"{op.name}: offsets have 32 or 64 bits")


def is_wide(offset: SSAValue) -> bool:
    """Whether an offset has 64 bits."""
    return offset.type == i64


OPS = [MakeTensorPtrOp, AdvanceOp]
