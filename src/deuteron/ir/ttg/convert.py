"""Conversion between layouts: the same tile, its elements in other registers, lanes and warps.

%y = "ttg.convert_layout"(%x) : (tensor<64x64xf32, #ttg.linear<...>>) -> tensor<64x64xf32, #ttg.linear<...>>
"""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import element_type_of, shape_of


@irdl_op_definition
class ConvertLayoutOp(IRDLOperation):
    """Gives a tile another layout."""

    name = "ttg.convert_layout"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, result_type: Attribute):
        super().__init__(operands=[src], result_types=[result_type])

    def verify_(self) -> None:
        source, result = self.src.type, self.result.type
        if shape_of(source) != shape_of(result) or element_type_of(source) != element_type_of(result):
            raise VerifyException(f"ttg.convert_layout keeps shape and elements, got {source} and {result}")


OPS = [ConvertLayoutOp]
