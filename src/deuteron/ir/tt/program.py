"""The program's place in the grid: `tt.get_program_id`, `tt.get_num_programs` along axis 0, 1 or 2."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import i32


class _GridOp(IRDLOperation):
    axis = prop_def(IntegerAttr)
    result = result_def(i32)
    traits = traits_def(Pure())

    def __init__(self, axis: int):
        super().__init__(result_types=[i32], properties={"axis": IntegerAttr(axis, i32)})

    def verify_(self) -> None:
        if self.axis.value.data not in (0, 1, 2):
            raise VerifyException(f"{self.name} needs an axis of 0, 1 or 2, got {self.axis.value.data}")


@irdl_op_definition
class GetProgramIdOp(_GridOp):
    """The index of this program along an axis of the grid, i32."""

    name = "tt.get_program_id"


@irdl_op_definition
class GetNumProgramsOp(_GridOp):
    """The number of programs along an axis of the grid, i32."""

    name = "tt.get_num_programs"


OPS = [GetProgramIdOp, GetNumProgramsOp]
