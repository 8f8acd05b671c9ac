"""Ops that make and reshape tiles: make_range, splat, broadcast, expand_dims, reshape, trans, join, split, cat.

%i = "tt.make_range"() <{start = 0 : i32, end = 64 : i32}> : () -> tensor<64xi32>
%s = "tt.splat"(%n) : (i32) -> tensor<64xi32>
%e = "tt.expand_dims"(%i) <{axis = 1 : i32}> : (tensor<64xi32>) -> tensor<64x1xi32>
%b = "tt.broadcast"(%e) : (tensor<64x1xi32>) -> tensor<64x32xi32>
%t = "tt.trans"(%b) <{order = array<i32: 1, 0>}> : (tensor<64x32xi32>) -> tensor<32x64xi32>
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import element_type_of, i32, is_tile, num_elements_of, shape_of, tile


def _has_elements_of(result: SSAValue, source: SSAValue) -> bool:
    return element_type_of(result.type) == element_type_of(source.type)


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    """The integers from `start` up to and without `end`, i32."""

    name = "tt.make_range"
    start = prop_def(IntegerAttr)
    end = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, start: int, end: int):
        super().__init__(
            result_types=[tile(i32, [end - start])],
            properties={"start": IntegerAttr(start, i32), "end": IntegerAttr(end, i32)},
        )

    def verify_(self) -> None:
        extent = self.end.value.data - self.start.value.data
        fits = shape_of(self.result.type) == (extent,) and element_type_of(self.result.type) == i32
        if not fits:
            raise VerifyException(f"tt.make_range of {extent} integers gives {self.result.type}")


@irdl_op_definition
class SplatOp(IRDLOperation):
    """A tile with one scalar everywhere."""

    name = "tt.splat"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[tile(src.type, shape)])

    def verify_(self) -> None:
        fits = is_tile(self.result.type) and element_type_of(self.result.type) == self.src.type
        if not fits:
            raise VerifyException(f"tt.splat of {self.src.type} gives {self.result.type}")


@irdl_op_definition
class UnsplatOp(IRDLOperation):
    """The scalar in a tile of one element."""

    name = "tt.unsplat"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue):
        super().__init__(operands=[src], result_types=[element_type_of(src.type)])

    def verify_(self) -> None:
        fits = num_elements_of(self.src.type) == 1 and self.result.type == element_type_of(self.src.type)
        if not fits:
            raise VerifyException(f"tt.unsplat of {self.src.type} gives {self.result.type}")


@irdl_op_definition
class BroadcastOp(IRDLOperation):
    """Repeats dimensions of extent 1; the rank stays."""

    name = "tt.broadcast"
    src = operand_def()
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, shape: Sequence[int]):
        super().__init__(operands=[src], result_types=[tile(element_type_of(src.type), shape)])

    def verify_(self) -> None:
        source, result = shape_of(self.src.type), shape_of(self.result.type)
        fits = len(source) == len(result) and all(s in (1, r) for s, r in zip(source, result, strict=True))
        if not fits or not _has_elements_of(self.result, self.src):
            raise VerifyException(f"tt.broadcast from {self.src.type} to {self.result.type}")


@irdl_op_definition
class ExpandDimsOp(IRDLOperation):
    """Inserts a dimension of extent 1 at `axis`."""

    name = "tt.expand_dims"
    src = operand_def()
    axis = prop_def(IntegerAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, axis: int):
        shape = list(shape_of(src.type))
        shape.insert(axis, 1)
        super().__init__(
            operands=[src],
            result_types=[tile(element_type_of(src.type), shape)],
            properties={"axis": IntegerAttr(axis, i32)},
        )

    def source_axis(self, axis: int) -> int:
        """The dimension of the source that this one of the result is; of the inserted one, the next."""
        return axis - (axis > self.axis.value.data)

    def result_axis(self, axis: int) -> int:
        """The dimension of the result that this one of the source is."""
        return axis + (axis >= self.axis.value.data)

    def verify_(self) -> None:
        axis, expected = self.axis.value.data, list(shape_of(self.src.type))
        if not 0 <= axis <= len(expected):
            raise VerifyException(f"tt.expand_dims: axis {axis} of a tile of rank {len(expected)}")
        expected.insert(axis, 1)
        if list(shape_of(self.result.type)) != expected or not _has_elements_of(self.result, self.src):
            raise VerifyException(f"tt.expand_dims of {self.src.type} gives {self.result.type}")


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The same elements in another shape, row-major; any order where `allow_reorder` is set."""

    name = "tt.reshape"
    src = operand_def()
    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, shape: Sequence[int], allow_reorder: bool = False):
        super().__init__(
            operands=[src],
            result_types=[tile(element_type_of(src.type), shape)],
            properties={"allow_reorder": UnitAttr() if allow_reorder else None},
        )

    def verify_(self) -> None:
        is_as_large = num_elements_of(self.src.type) == num_elements_of(self.result.type)
        if not is_as_large or not _has_elements_of(self.result, self.src):
            raise VerifyException(f"tt.reshape from {self.src.type} to {self.result.type}")


@irdl_op_definition
class TransOp(IRDLOperation):
    """Permutes dimensions: dimension i of the result is dimension `order[i]` of the source."""

    name = "tt.trans"
    src = operand_def()
    order = prop_def(DenseArrayBase)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue, order: Sequence[int]):
        shape = shape_of(src.type)
        super().__init__(
            operands=[src],
            result_types=[tile(element_type_of(src.type), [shape[axis] for axis in order])],
            properties={"order": DenseArrayBase.from_list(i32, list(order))},
        )

    @property
    def permutation(self) -> tuple[int, ...]:
        return tuple(self.order.get_values())

    def source_axis(self, axis: int) -> int:
        """The dimension of the source that this one of the result is."""
        return self.permutation[axis]

    def result_axis(self, axis: int) -> int:
        """The dimension of the result that this one of the source is."""
        return self.permutation.index(axis)

    def verify_(self) -> None:
        shape, order = shape_of(self.src.type), self.permutation
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(f"tt.trans: order {order} is no permutation")
        fits = shape_of(self.result.type) == tuple(shape[axis] for axis in order)
        if not fits or not _has_elements_of(self.result, self.src):
            raise VerifyException(f"tt.trans of {self.src.type} by {order} gives {self.result.type}")


@irdl_op_definition
class JoinOp(IRDLOperation):
    """Two tiles along a new last dimension of extent 2."""

    name = "tt.join"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[tile(element_type_of(lhs.type), [*shape_of(lhs.type), 2])])

    def verify_(self) -> None:
        fits = shape_of(self.result.type) == (*shape_of(self.lhs.type), 2)
        if not fits or not _has_elements_of(self.result, self.lhs):
            raise VerifyException(f"tt.join of two {self.lhs.type} gives {self.result.type}")


@irdl_op_definition
class SplitOp(IRDLOperation):
    """The two halves of a tile whose last dimension has extent 2."""

    name = "tt.split"
    src = operand_def()
    lhs = result_def()
    rhs = result_def()
    traits = traits_def(Pure())

    def __init__(self, src: SSAValue):
        half = tile(element_type_of(src.type), shape_of(src.type)[:-1])
        super().__init__(operands=[src], result_types=[half, half])

    def verify_(self) -> None:
        shape = shape_of(self.src.type)
        fits = shape[-1:] == (2,) and shape_of(self.lhs.type) == shape_of(self.rhs.type) == shape[:-1]
        if not fits or not all(_has_elements_of(half, self.src) for half in (self.lhs, self.rhs)):
            raise VerifyException(f"tt.split of {self.src.type} gives {self.lhs.type}")


@irdl_op_definition
class CatOp(IRDLOperation):
    """Two tiles of one dimension one after the other."""

    name = "tt.cat"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        extent = 2 * shape_of(lhs.type)[0]
        super().__init__(operands=[lhs, rhs], result_types=[tile(element_type_of(lhs.type), [extent])])

    def verify_(self) -> None:
        first, *others = shape_of(self.lhs.type) or (0,)
        fits = shape_of(self.result.type) == (2 * first, *others)
        if not fits or not _has_elements_of(self.result, self.lhs):
            raise VerifyException(f"tt.cat of two {self.lhs.type} gives {self.result.type}")


OPS = [
    MakeRangeOp,
    SplatOp,
    UnsplatOp,
    BroadcastOp,
    ExpandDimsOp,
    ReshapeOp,
    TransOp,
    JoinOp,
    SplitOp,
    CatOp,
]
