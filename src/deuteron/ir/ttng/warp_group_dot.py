"""Dots by wgmma: `ttng.warp_group_dot`, and `ttng.warp_group_dot_wait` for those in flight.

    %d = "ttng.warp_group_dot"(%a, %b, %c) <{inputPrecision = 0 : i32, isAsync = true, maxNumImpreciseAcc = 0 : i32}>
         : (!ttg.memdesc<128x64xf16, ...>, !ttg.memdesc<64x256xf16, ...>, tensor<128x256xf32, ...>)
         -> tensor<128x256xf32, ...>
    %r = "ttng.warp_group_dot_wait"(%d) <{pendings = 0 : i32}> : (tensor<...>) -> tensor<...>

b is in shared memory, a there or in registers. The result of an asynchronous dot, and the shared memory that it
reads, may not be touched before a wait that leaves at most `pendings` later dots in flight.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import OTHER, SHARED, Effect, orders, reads, writes
from deuteron.ir.tt.dot import InputPrecision
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.types import byte_width_of, i32, is_float, shape_of


def tile_of(type: Attribute) -> Attribute:
    """The tile that a descriptor holds, or the tile itself."""
    return type.tile if isinstance(type, MemDescType) else type


@irdl_op_definition
class WarpGroupDotOp(IRDLOperation):
    """The dot a @ b + c by wgmma."""

    name = "ttng.warp_group_dot"
    a = operand_def()
    b = operand_def(MemDescType)
    c = operand_def()
    result = result_def()
    input_precision = prop_def(IntegerAttr, prop_name="inputPrecision")
    max_num_imprecise_acc = prop_def(IntegerAttr, prop_name="maxNumImpreciseAcc")
    is_async = prop_def(IntegerAttr, prop_name="isAsync")

    def __init__(
        self,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        input_precision: InputPrecision = InputPrecision.TF32,
        max_num_imprecise_acc: int = 0,
        is_async: bool = False,
    ):
        super().__init__(
            operands=[a, b, c],
            result_types=[c.type],
            properties={
                "inputPrecision": IntegerAttr(input_precision, i32),
                "maxNumImpreciseAcc": IntegerAttr(max_num_imprecise_acc, i32),
                "isAsync": BoolAttr.from_bool(is_async),
            },
        )

    @property
    def descriptors(self) -> list[SSAValue]:
        """The operands in shared memory."""
        return [value for value in (self.a, self.b) if isinstance(value.type, MemDescType)]

    @property
    def part_depth(self) -> int:
        """How many fp8 products along K are summed by the instruction, in about 14 bits, before their sum is added to c
        in full precision; 0: all.
        """
        depth, limit = shape_of(tile_of(self.b.type))[0], self.max_num_imprecise_acc.value.data
        is_fp8 = byte_width_of(tile_of(self.b.type)) == 1 and is_float(tile_of(self.b.type))
        return limit if is_fp8 and 0 < limit <= depth else 0

    def effects(self) -> list[Effect]:
        return [*(reads(SHARED, value) for value in self.descriptors), writes(OTHER)]

    def verify_(self) -> None:
        a, b, c = (shape_of(tile_of(value.type)) for value in (self.a, self.b, self.c))
        if not len(a) == len(b) == len(c) == 2 or a[1] != b[0] or c != (a[0], b[1]):
            raise VerifyException(f"ttng.warp_group_dot: shapes {a} @ {b} + {c} do not go together")
        if self.result.type != self.c.type:
            raise VerifyException(f"ttng.warp_group_dot: the result is {self.result.type}, c is {self.c.type}")


@irdl_op_definition
class WarpGroupDotWaitOp(IRDLOperation):
    """Waits until at most `pendings` dots are in flight, and gives the `inputs` as they are then: their sums, and the
    operands that they read in registers, which have to be there until then, if nobody uses what it gives of them.
    """

    name = "ttng.warp_group_dot_wait"
    inputs = var_operand_def()
    outputs = var_result_def()
    pendings = prop_def(IntegerAttr)

    def __init__(self, inputs: Sequence[SSAValue], pendings: int):
        super().__init__(
            operands=[inputs],
            result_types=[[value.type for value in inputs]],
            properties={"pendings": IntegerAttr(pendings, i32)},
        )

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(resources=[SHARED])]

    def verify_(self) -> None:
        if self.operand_types != self.result_types:
            raise VerifyException("ttng.warp_group_dot_wait gives the types that it takes")
        if self.pendings.value.data < 0:
            raise VerifyException(f"pendings must be at least 0, got {self.pendings.value.data}")


OPS = [WarpGroupDotOp, WarpGroupDotWaitOp]
