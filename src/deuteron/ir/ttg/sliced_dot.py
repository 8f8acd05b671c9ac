"""Dots by multiply-adds in threads, which read their operands from shared memory: `ttg.sliced_dot`.

    %d = "ttg.sliced_dot"(%a, %b, %c) <{inputPrecision = 2 : i32, depth = 4 : i32}>
         : (!ttg.memdesc<64x32xf32, ...>, !ttg.memdesc<32x64xf32, ...>, tensor<64x64xf32, ...>)
         -> tensor<64x64xf32, ...>

A thread has `depth` columns of a and rows of b in its registers at a time. Sums are those of the whole dot, in its
order.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import SHARED, Effect, reads
from deuteron.ir.tt.dot import InputPrecision
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.types import i32, shape_of


@irdl_op_definition
class SlicedDotOp(IRDLOperation):
    """The dot a @ b + c, of one or several batches, `depth` of K at a time."""

    name = "ttg.sliced_dot"
    a = operand_def(MemDescType)
    b = operand_def(MemDescType)
    c = operand_def()
    result = result_def()
    input_precision = prop_def(IntegerAttr, prop_name="inputPrecision")
    depth = prop_def(IntegerAttr)

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue, input_precision: InputPrecision, depth: int):
        super().__init__(
            operands=[a, b, c],
            result_types=[c.type],
            properties={"inputPrecision": IntegerAttr(input_precision, i32), "depth": IntegerAttr(depth, i32)},
        )

    def effects(self) -> list[Effect]:
        return [reads(SHARED, self.a), reads(SHARED, self.b)]

    def verify_(self) -> None:
        (*batch, m, k), b = shape_of(self.a.type.tile), shape_of(self.b.type.tile)
        c, depth = shape_of(self.c.type), self.depth.value.data
        if b != (*batch, k, b[-1]) or c != (*batch, m, b[-1]):
            raise VerifyException(f"ttg.sliced_dot: shapes {(*batch, m, k)} @ {b} + {c} do not go together")
        if self.result.type != self.c.type:
            raise VerifyException(f"ttg.sliced_dot: the result is {self.result.type}, c is {self.c.type}")
        if depth < 1 or depth & (depth - 1) or depth > k:
            raise VerifyException(f"ttg.sliced_dot: depth must be a power of two up to {k}, got {depth}")


OPS = [SlicedDotOp]
