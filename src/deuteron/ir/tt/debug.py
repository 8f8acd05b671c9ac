"""What a kernel says of itself at run time: `tt.print`, `tt.assert`.

pid (0, 0, 0) idx ( 3) x: 1.500000       a line for each element, as Triton prints it
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import OTHER, Effect, orders, writes
from deuteron.ir.types import element_type_of, i1, i32, is_tile, shape_of

_PROGRAM = "pid (%d, %d, %d)"


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Prints the program id, a prefix and the values, element by element: floats as %f, integers as %d or in hex."""

    name = "tt.print"
    prefix = prop_def(StringAttr)
    hex = prop_def(IntegerAttr)
    is_signed = prop_def(DenseArrayBase, prop_name="isSigned")
    values = var_operand_def()

    def __init__(self, prefix: str, values: Sequence[SSAValue], is_signed: Sequence[bool], hex: bool = False):
        super().__init__(
            operands=[values],
            properties={
                "prefix": StringAttr(prefix),
                "hex": IntegerAttr(int(hex), i1),
                "isSigned": DenseArrayBase.from_list(i32, [int(signed) for signed in is_signed]),
            },
        )

    def beginning(self, number: int) -> str:
        """What a line says before an element of the operand of that number: a format of the program's three numbers
        and of the element's index.
        """
        shape = shape_of(self.values[number].type) if is_tile(self.values[number].type) else ()
        index = ", ".join(f"%{len(str(extent))}d" for extent in shape)
        label = f"(operand {number}) " if len(self.values) > 1 else ""
        return f"{_PROGRAM} idx ({index}){self._prefix}{label}"

    @property
    def line_without_values(self) -> str:
        """A format of the program's three numbers."""
        return _PROGRAM + self._prefix

    @property
    def _prefix(self) -> str:
        return self.prefix.data.replace("%", "%%")

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders()]

    def verify_(self) -> None:
        if len(self.is_signed) != len(self.values):
            raise VerifyException(
                f"tt.print of {len(self.values)} values needs as many numbers in isSigned, got {len(self.is_signed)}"
            )


@irdl_op_definition
class AssertOp(IRDLOperation):
    """Stops the program with a message where a condition does not hold; not `always`: in kernels for debugging."""

    name = "tt.assert"
    condition = operand_def()
    message = prop_def(StringAttr)
    always = opt_prop_def(UnitAttr)

    def __init__(self, condition: SSAValue, message: str, always: bool = False):
        properties = {"message": StringAttr(message), "always": UnitAttr() if always else None}
        super().__init__(operands=[condition], properties=properties)

    def counts(self, debug: bool) -> bool:
        """Whether it is checked in a kernel that is compiled for debugging, or is not."""
        return debug or self.always is not None

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders()]

    def verify_(self) -> None:
        if element_type_of(self.condition.type) != i1:
            raise VerifyException(f"tt.assert needs a condition of i1, got {self.condition.type}")


OPS = [PrintOp, AssertOp]
