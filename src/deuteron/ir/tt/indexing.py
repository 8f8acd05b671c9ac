"""Ops on elements that an index finds, which is known when the kernel runs: gather, histogram.

%g = "tt.gather"(%x, %i) <{axis = 1 : i32}> : (tensor<8x64xf32>, tensor<8x16xi32>) -> tensor<8x16xf32>
%h = "tt.histogram"(%x, %mask) : (tensor<128xi32>, tensor<128xi1>) -> tensor<64xi32>
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import element_type_of, i1, i32, is_integer, shape_of, tile


@irdl_op_definition
class GatherOp(IRDLOperation):
    """The elements of `src` whose coordinate along `axis` is the index, the others where the index itself is.

    An index that is not below the extent gives some element of `src`.
    """

    name = "tt.gather"
    src = operand_def()
    indices = operand_def()
    axis = prop_def(IntegerAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, indices: SSAValue, axis: int):
        super().__init__(
            operands=[src, indices],
            result_types=[tile(element_type_of(src.type), shape_of(indices.type))],
            properties={"axis": IntegerAttr(axis, i32)},
        )

    def verify_(self) -> None:
        source, indices, axis = shape_of(self.src.type), shape_of(self.indices.type), self.axis.value.data
        if not is_integer(self.indices.type):
            raise VerifyException(f"tt.gather needs indices that are integers, got {self.indices.type}")
        if len(source) != len(indices) or not 0 <= axis < len(source):
            raise VerifyException(f"tt.gather along axis {axis} of {self.src.type} with {self.indices.type}")
        others = ((s, i) for a, (s, i) in enumerate(zip(source, indices, strict=True)) if a != axis)
        if any(s != i for s, i in others):
            raise VerifyException(f"tt.gather: {source} and {indices} differ outside of axis {axis}")
        fits = element_type_of(self.result.type) == element_type_of(self.src.type)
        if shape_of(self.result.type) != indices or not fits:
            raise VerifyException(f"tt.gather of {self.src.type} at {self.indices.type} gives {self.result.type}")


@irdl_op_definition
class HistogramOp(IRDLOperation):
    """How often each of the numbers 0, 1, ... is in a tile, of the elements that the mask, if any, lets pass."""

    name = "tt.histogram"
    src = operand_def()
    mask = opt_operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, num_bins: int, mask: SSAValue | None = None):
        super().__init__(operands=[src, mask], result_types=[tile(i32, [num_bins])])

    def verify_(self) -> None:
        if len(shape_of(self.src.type)) != 1 or not is_integer(self.src.type):
            raise VerifyException(f"tt.histogram needs integers in one dimension, got {self.src.type}")
        if self.mask is not None:
            is_mask = element_type_of(self.mask.type) == i1 and shape_of(self.mask.type) == shape_of(self.src.type)
            if not is_mask:
                raise VerifyException(f"tt.histogram of {self.src.type} has a mask of {self.mask.type}")
        if len(shape_of(self.result.type)) != 1 or element_type_of(self.result.type) != i32:
            raise VerifyException(f"tt.histogram gives i32 in one dimension, not {self.result.type}")


OPS = [GatherOp, HistogramOp]
