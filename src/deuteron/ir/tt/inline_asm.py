"""Assembly for every element of some tiles.

%r = "tt.elementwise_inline_asm"(%x, %y) <{asm_string = "add.u32 $0, $1, $2;", constraints = "=r,r,r",
    pure = true, packed_element = 1 : i32}> : (tensor<64xi32>, tensor<64xi32>) -> tensor<64xi32>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, var_operand_def, var_result_def
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import EVERYTHING, Effect
from deuteron.ir.types import bit_width_of, i1, i32, shape_of
from deuteron.ptx.inline import check_registers, check_template, parse_constraints


@irdl_op_definition
class ElementwiseInlineAsmOp(IRDLOperation):
    """Runs assembly for each `packed_element` elements of tiles of one shape; if it is not pure, it may do anything."""

    name = "tt.elementwise_inline_asm"
    args = var_operand_def()
    res = var_result_def()
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(IntegerAttr)
    packed_element = prop_def(IntegerAttr)

    def __init__(
        self,
        asm: str,
        constraints: str,
        args: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        is_pure: bool,
        pack: int,
    ):
        super().__init__(
            operands=[args],
            result_types=[result_types],
            properties={
                "asm_string": StringAttr(asm),
                "constraints": StringAttr(constraints),
                "pure": IntegerAttr(int(is_pure), i1),
                "packed_element": IntegerAttr(pack, i32),
            },
        )

    @property
    def pack(self) -> int:
        return self.packed_element.value.data

    def effects(self) -> Iterable[Effect]:
        return () if self.pure.value.data else EVERYTHING

    def verify_(self) -> None:
        values = (*self.args, *self.res)
        if not self.res or self.pack < 1 or len({shape_of(value.type) for value in values}) != 1:
            shown = ", ".join(str(value.type) for value in values)
            raise VerifyException(f"tt.elementwise_inline_asm needs results, and values of one shape, got {shown}")
        try:
            check_assembly(self.asm_string.data, self.constraints.data, _bits(self.args), _bits(self.res), self.pack)
        except ValueError as error:
            raise VerifyException(f"tt.elementwise_inline_asm: {error}") from None


def _bits(values: Sequence[SSAValue]) -> list[int]:
    return [element_bits(value.type) for value in values]


def element_bits(type: Attribute) -> int:
    """Bits of an element in a register: 8 of an i1."""
    return max(bit_width_of(type), 8)


def check_assembly(asm: str, constraints: str, arg_bits: list[int], result_bits: list[int], pack: int) -> None:
    """Raise ValueError where template, constraints and elements of so many bits do not go together."""
    parsed = parse_constraints(constraints)
    check_registers("output", "the results", parsed.outputs, result_bits, pack)
    check_registers("input", "the arguments", parsed.inputs, arg_bits, pack)
    check_template(asm, len(parsed.operands))


OPS = [ElementwiseInlineAsmOp]
