"""The program's place in the grid, `tt.get_program_id`, `tt.get_num_programs` along axis 0, 1 or 2; and in time."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import OTHER, Effect, writes
from deuteron.ir.types import i32, i64


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


@irdl_op_definition
class GlobalTimerOp(IRDLOperation):
    """Nanoseconds of a clock that all programs share, i64. Triton's dialect has no such op."""

    name = "tt.global_timer"
    result = result_def(i64)

    def __init__(self) -> None:
        super().__init__(result_types=[i64])

    def effects(self) -> list[Effect]:
        """Each gives another time: they are neither merged nor moved."""
        return [writes(OTHER)]


OPS = [GetProgramIdOp, GetNumProgramsOp, GlobalTimerOp]
