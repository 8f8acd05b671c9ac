"""Reductions and scans along an axis, with the combination of two elements as a region.

    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = "arith.addf"(%a, %b) ... : (f32, f32) -> f32
      "tt.reduce.return"(%c) : (f32) -> ()
    }) : (tensor<64x32xf32>) -> tensor<64xf32>

With n operands (argmax: values and indices) the region has 2n arguments, first the n of one side, then the n of the
other, and there are n results. The combination is taken as associative; after `order-reductions` that of
a reduction also as commutative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import element_type_of, i1, i32, shape_of, tile


def _combine_region(srcs: Sequence[SSAValue]) -> Region:
    element_types = [element_type_of(src.type) for src in srcs]
    return Region(Block(arg_types=[*element_types, *element_types]))


def _check_operands(op: ReduceOp | ScanOp) -> None:
    shapes = {shape_of(src.type) for src in op.srcs}
    if len(shapes) != 1:
        raise VerifyException(f"{op.name} needs operands of one shape, got {sorted(shapes)}")
    axis, rank = op.axis.value.data, len(shape_of(op.srcs[0].type))
    if not 0 <= axis < rank:
        raise VerifyException(f"{op.name}: axis {axis} of a tile of rank {rank}")
    if tuple(op.combine.block.arg_types) != tuple(element_type_of(s.type) for s in op.srcs) * 2:
        raise VerifyException(f"{op.name}: the region's arguments do not match the operands")
    last = op.combine.block.last_op
    if not isinstance(last, op.END):
        raise VerifyException(f"{op.name}: the region ends with {op.END.name}, got {last.name if last else 'nothing'}")
    if [value.type for value in last.operands] != [element_type_of(src.type) for src in op.srcs]:
        raise VerifyException(f"{op.name}: the region gives other types than the operands have")


def reduced_type(type: Attribute, axis: int) -> Attribute:
    """The type of a tile without one of its dimensions."""
    shape = shape_of(type)
    return tile(element_type_of(type), shape[:axis] + shape[axis + 1 :])


@irdl_op_definition
class ReduceReturnOp(IRDLOperation):
    """Ends the region of a reduction."""

    name = "tt.reduce.return"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Combines all elements along `axis`; a tile of one dimension becomes a scalar."""

    name = "tt.reduce"
    END: ClassVar = ReduceReturnOp
    srcs = var_operand_def()
    res = var_result_def()
    axis = prop_def(IntegerAttr)
    combine = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, srcs: Sequence[SSAValue], axis: int):
        """The region starts empty; its block has the arguments."""
        super().__init__(
            operands=[srcs],
            result_types=[[reduced_type(src.type, axis) for src in srcs]],
            properties={"axis": IntegerAttr(axis, i32)},
            regions=[_combine_region(srcs)],
        )

    def verify_(self) -> None:
        _check_operands(self)
        expected = [reduced_type(src.type, self.axis.value.data) for src in self.srcs]
        got = [tile(element_type_of(result.type), shape_of(result.type)) for result in self.res]
        if got != expected:
            raise VerifyException(f"tt.reduce gives {[str(t) for t in got]}, expected {[str(t) for t in expected]}")


@irdl_op_definition
class ScanReturnOp(IRDLOperation):
    """Ends the region of a scan."""

    name = "tt.scan.return"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Combines each element along `axis` with all before it (with all after it where `reverse` is set)."""

    name = "tt.scan"
    END: ClassVar = ScanReturnOp
    srcs = var_operand_def()
    res = var_result_def()
    axis = prop_def(IntegerAttr)
    reverse = prop_def(IntegerAttr)
    combine = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, srcs: Sequence[SSAValue], axis: int, reverse: bool = False):
        super().__init__(
            operands=[srcs],
            result_types=[[src.type for src in srcs]],
            properties={"axis": IntegerAttr(axis, i32), "reverse": IntegerAttr(int(reverse), i1)},
            regions=[_combine_region(srcs)],
        )

    def verify_(self) -> None:
        _check_operands(self)
        got, wanted = ([value.type for value in values] for values in (self.res, self.srcs))
        if got != wanted:
            raise VerifyException(f"tt.scan gives {[str(t) for t in got]}, expected {[str(t) for t in wanted]}")


OPS = [ReduceOp, ReduceReturnOp, ScanOp, ScanReturnOp]
