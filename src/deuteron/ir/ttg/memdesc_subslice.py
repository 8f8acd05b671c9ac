"""A part of a tile in shared memory: `ttg.memdesc_subslice`, and `ttg.memdesc_slice` with a number known at run time.

    %s = "ttg.memdesc_subslice"(%m) <{offsets = array<i32: 0, 8>}>
       : (!ttg.memdesc<64x32xf32, #shared, ...>) -> !ttg.memdesc<64x8xf32, #shared, ...>
    %s = "ttg.memdesc_slice"(%m, %i) <{axis = 1 : i32}>             columns 8 * %i to 8 * %i + 7
       : (!ttg.memdesc<64x32xf32, #shared, ...>, i32) -> !ttg.memdesc<64x8xf32, #shared, ...>

The layout stays that of the whole tile: in it, the part is aligned to its own extents. Nothing is moved.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.types import element_type_of, i32, shape_of


@irdl_op_definition
class MemDescSubsliceOp(IRDLOperation):
    """The part of a tile that begins at `offsets`."""

    name = "ttg.memdesc_subslice"
    src = operand_def(MemDescType)
    result = result_def(MemDescType)
    offsets = prop_def(DenseArrayBase)
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, offsets: Sequence[int], shape: Sequence[int]):
        held = src.type.tile
        super().__init__(
            operands=[src],
            result_types=[MemDescType(TensorType(held.element_type, shape, held.encoding))],
            properties={"offsets": DenseArrayBase.from_list(i32, list(offsets))},
        )

    def verify_(self) -> None:
        source, result, offsets = self.src.type.tile, self.result.type.tile, self.offsets.get_values()
        same = element_type_of(source) == element_type_of(result) and source.encoding == result.encoding
        if not same or not len(offsets) == len(shape_of(source)) == len(shape_of(result)):
            raise VerifyException(f"ttg.memdesc_subslice of {self.src.type} does not give {self.result.type}")
        for offset, part, whole in zip(offsets, shape_of(result), shape_of(source), strict=True):
            if whole % part or offset % part or not 0 <= offset < whole:
                raise VerifyException(
                    f"ttg.memdesc_subslice: {part} elements from {offset} on are no aligned part of {whole}"
                )


@irdl_op_definition
class MemDescSliceOp(IRDLOperation):
    """The slice number `index` of those that a tile consists of along the dimension `axis`."""

    name = "ttg.memdesc_slice"
    src = operand_def(MemDescType)
    index = operand_def(i32)
    result = result_def(MemDescType)
    axis = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, index: SSAValue, axis: int, count: int):
        held = src.type.tile
        shape = [size // count if place == axis else size for place, size in enumerate(shape_of(held))]
        super().__init__(
            operands=[src, index],
            result_types=[MemDescType(TensorType(held.element_type, shape, held.encoding))],
            properties={"axis": IntegerAttr(axis, i32)},
        )

    def verify_(self) -> None:
        source, result, axis = self.src.type.tile, self.result.type.tile, self.axis.value.data
        whole, part = shape_of(source), shape_of(result)
        is_axis = len(part) == len(whole) and 0 <= axis < len(whole)
        is_slice = is_axis and whole[axis] % part[axis] == 0
        others = [size for place, size in enumerate(whole) if place != axis]
        same = element_type_of(source) == element_type_of(result) and source.encoding == result.encoding
        if not same or not is_slice or others != [size for place, size in enumerate(part) if place != axis]:
            raise VerifyException(f"ttg.memdesc_slice of {self.src.type} along {axis} does not give {self.result.type}")


OPS = [MemDescSubsliceOp, MemDescSliceOp]
