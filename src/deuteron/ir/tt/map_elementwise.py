"""A function of scalars, with whatever control flow, for every element of some tiles.

    %r = "tt.map_elementwise"(%x, %y) <{pack = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      ... scf.if ...
      "tt.map_elementwise.return"(%c) : (f32) -> ()
    }) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>

With `pack` = p the region is given p elements at a time: first p of the first tile, then p of the second ...; it
returns p of each result, in the same order. Which elements come together is open.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Region, SSAValue
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

from deuteron.ir.types import element_type_of, i32, is_tile, shape_of


def repeated(values: Sequence[SSAValue], pack: int) -> list[Attribute]:
    """The element type of each value, `pack` times."""
    return [element_type_of(value.type) for value in values for _ in range(pack)]


def _are_repeated(types: Sequence[Attribute], values: Sequence[SSAValue], pack: int) -> bool:
    """Whether the types are those; of a text any number may be the pack."""
    return len(types) == len(values) * pack and list(types) == repeated(values, pack)


@irdl_op_definition
class MapElementwiseOp(IRDLOperation):
    """Runs its region, which only computes and reads, for each `pack` elements of tiles of one shape."""

    name = "tt.map_elementwise"
    srcs = var_operand_def()
    res = var_result_def()
    pack = prop_def(IntegerAttr)
    scalar_op = region_def("single_block")
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(self, srcs: Sequence[SSAValue], result_types: Sequence[Attribute], pack: int, scalar_op: Region):
        super().__init__(
            operands=[srcs],
            result_types=[result_types],
            properties={"pack": IntegerAttr(pack, i32)},
            regions=[scalar_op],
        )

    def verify_(self) -> None:
        pack, block = self.pack.value.data, self.scalar_op.block
        shapes = {shape_of(value.type) for value in (*self.srcs, *self.res)}
        if len(shapes) != 1 or pack < 1:
            raise VerifyException(f"tt.map_elementwise needs tiles of one shape, got {sorted(shapes)}, pack {pack}")
        if not _are_repeated(block.arg_types, self.srcs, pack):
            raise VerifyException("tt.map_elementwise: the region's arguments do not match the operands")
        returned = block.last_op
        is_returned = isinstance(returned, MapElementwiseReturnOp)
        if is_returned and not _are_repeated(returned.operand_types, self.res, pack):
            raise VerifyException("tt.map_elementwise: what the region returns does not match the results")
        if any(is_tile(value.type) for op in block.walk() for value in op.results):
            raise VerifyException("tt.map_elementwise: its region works on scalars")


@irdl_op_definition
class MapElementwiseReturnOp(IRDLOperation):
    """Ends the region of a map."""

    name = "tt.map_elementwise.return"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


OPS = [MapElementwiseOp, MapElementwiseReturnOp]
