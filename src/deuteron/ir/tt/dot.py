"""Matrix products: `tt.dot`.

    %d = "tt.dot"(%a, %b, %c) <{inputPrecision = 0 : i32, maxNumImpreciseAcc = 0 : i32}>
         : (tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>

a is [M, K] or [B, M, K], b is [K, N] or [B, K, N]; the result, a @ b + c, has the type of c.
"""

from __future__ import annotations

from enum import IntEnum

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import i32, shape_of


class InputPrecision(IntEnum):
    """How float32 operands are rounded before they are multiplied."""

    TF32 = 0
    TF32x3 = 1
    IEEE = 2
    BF16x3 = 3
    BF16x6 = 4


@irdl_op_definition
class DotOp(IRDLOperation):
    """The matrix dot a @ b + c, accumulated in the type of c."""

    name = "tt.dot"
    a = operand_def()
    b = operand_def()
    c = operand_def()
    result = result_def()
    input_precision = prop_def(IntegerAttr, prop_name="inputPrecision")
    max_num_imprecise_acc = prop_def(IntegerAttr, prop_name="maxNumImpreciseAcc")
    traits = traits_def(Pure())

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        input_precision: InputPrecision = InputPrecision.TF32,
        max_num_imprecise_acc: int = 0,
    ):
        super().__init__(
            operands=[a, b, c],
            result_types=[c.type],
            properties={
                "inputPrecision": IntegerAttr(input_precision, i32),
                "maxNumImpreciseAcc": IntegerAttr(max_num_imprecise_acc, i32),
            },
        )

    def verify_(self) -> None:
        a, b, c = (shape_of(value.type) for value in (self.a, self.b, self.c))
        if not 2 <= len(a) == len(b) == len(c) <= 3:
            raise VerifyException(f"tt.dot needs tiles of rank 2 or 3, got shapes {a}, {b}, {c}")
        if a[-1] != b[-2] or c != (*a[:-1], b[-1]) or a[:-2] != b[:-2]:
            raise VerifyException(f"tt.dot: shapes {a} @ {b} + {c} do not go together")
        if self.result.type != self.c.type:
            raise VerifyException(f"tt.dot: the result is {self.result.type}, the accumulator {self.c.type}")


OPS = [DotOp]
