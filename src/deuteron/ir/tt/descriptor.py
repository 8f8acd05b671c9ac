"""Descriptors of tensors in global memory, and accesses of their blocks.

    %d = "tt.make_tensor_descriptor"(%base, %rows, %columns, %stride, %one)
             <{operandSegmentSizes = array<i32: 1, 2, 2>, padding = 1 : i32}>
             : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<64x32xf16>
    %x = "tt.descriptor_load"(%d, %i, %j) <{cache = 1 : i32, evict = 1 : i32}>
             : (!tt.tensordesc<64x32xf16>, i32, i32) -> tensor<64x32xf16>
    "tt.descriptor_store"(%d, %x, %i, %j) : (!tt.tensordesc<64x32xf16>, tensor<64x32xf16>, i32, i32) -> ()

    %g = "tt.descriptor_gather"(%rows, %xs, %j) : (!tt.tensordesc<1x32xf16>, tensor<8xi32>, i32) -> tensor<8x32xf16>

Shape, strides and offsets count elements; the last stride is 1. What lies out of bounds loads as the padding says and
is not written. Offsets of loads may be negative. The integers of a type say whether they are signed: minima and maxima
depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from xdsl.dialects.builtin import IntegerAttr, IntegerType, Signedness, TensorType, UnitAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.arith import constant_value
from deuteron.ir.effects import GLOBAL, Effect, reads, writes
from deuteron.ir.member import member_of
from deuteron.ir.tt.atomic import AtomicKind
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, Padding
from deuteron.ir.types import PointerType, element_type_of, i32, i64, is_float, shape_of

MAX_RANK = 5
CONDITIONAL = "deuteron.conditional"
# Of one that was made of pointers: a launch finds out whether TMA can have it; and of a function in which none is made.
INFERRED, PLAIN_LOADS = "deuteron.inferred", "tt.plain_loads"
ALIGNMENT = 16  # of the base and the strides, in bytes


class DescriptorReduceKind(IntEnum):
    """What an atomic reduction into a block does to each element."""

    ADD = 1
    MIN = 2
    MAX = 3
    INC = 4
    DEC = 5
    AND = 6
    OR = 7
    XOR = 8


@irdl_attr_definition
class TensorDescType(ParametrizedAttribute, TypeAttribute):
    """A descriptor of a tensor that is accessed in blocks: `!tt.tensordesc<64x32xf16>`, with `si32` or `ui32`."""

    name = "tt.tensordesc"

    block: TensorType = param_def()

    def __init__(self, block: TensorType):
        super().__init__(block)

    @property
    def tile(self) -> TensorType:
        """The type of a block as a value: integers are signless."""
        element = self.block.element_type
        if isinstance(element, IntegerType):
            element = IntegerType(element.width.data)
        return TensorType(element, self.block.get_shape())

    @property
    def is_signed(self) -> bool:
        """Whether the elements are signed integers."""
        element = self.block.element_type
        return isinstance(element, IntegerType) and element.signedness.data == Signedness.SIGNED

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_dimension_list(shape_of(self.block))
            printer.print_string("x")
            printer.print_attribute(self.block.element_type)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Triton 3.4 has `<tensor<64x32xf16>>`."""
        with parser.in_angle_brackets():
            if (block := parser.parse_optional_type()) is not None:
                return [block]
            shape, element_type = parser.parse_ranked_shape()
            return [TensorType(element_type, shape)]


@irdl_op_definition
class MakeTensorDescriptorOp(IRDLOperation):
    """Describes a tensor in memory: where it begins, its shape, its strides.

    The attribute `CONDITIONAL` says that it is made in a branch, `INFERRED` that it was made of pointers.
    """

    name = "tt.make_tensor_descriptor"
    base = operand_def(PointerType)
    shape = var_operand_def(i32)
    strides = var_operand_def(i64)
    result = result_def(TensorDescType)
    padding = opt_prop_def(member_of(Padding))
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        base: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        type: TensorDescType,
        padding: Padding = Padding.ZERO,
    ):
        super().__init__(
            operands=[base, list(shape), list(strides)],
            result_types=[type],
            properties={"padding": IntegerAttr(padding, i32)},
        )

    @property
    def is_conditional(self) -> bool:
        return CONDITIONAL in self.attributes

    @property
    def is_inferred(self) -> bool:
        return INFERRED in self.attributes

    @property
    def pads_with_nan(self) -> bool:
        """Whether NaN is loaded from out of bounds, not 0."""
        return self.padding is not None and self.padding.value.data == Padding.NAN

    def verify_(self) -> None:
        tile = self.result.type.tile
        rank = len(shape_of(tile))
        if not 1 <= rank <= MAX_RANK or len(self.shape) != rank or len(self.strides) != rank:
            raise VerifyException(
                f"{self.name} of {rank} dimensions, from 1 to {MAX_RANK}, has {len(self.shape)} sizes "
                f"and {len(self.strides)} strides"
            )
        if self.base.type.pointee != tile.element_type:
            raise VerifyException(f"{self.name}: {self.base.type} does not point to elements of {self.result.type}")
        if constant_value(self.strides[-1]) != 1:
            raise VerifyException(f"{self.name}: the last stride is the constant 1")
        if self.pads_with_nan and isinstance(tile.element_type, IntegerType):
            raise VerifyException(f"{self.name}: integers are not padded with NaN")


def mark_plain_loads(func: Operation) -> None:
    """Let what is loaded through pointers stay so."""
    func.attributes[PLAIN_LOADS] = UnitAttr()


def is_block(tile: TensorType, descriptor: TensorDescType) -> bool:
    """Whether a tile is a block of a descriptor, maybe without dimensions of extent 1 that the block begins with."""
    block, shape = descriptor.tile, shape_of(tile)
    dropped = len(shape_of(block)) - len(shape)
    is_rest = dropped >= 0 and shape == shape_of(block)[dropped:] and set(shape_of(block)[:dropped]) <= {1}
    return is_rest and tile.element_type == block.element_type


class _BlockAccess(IRDLOperation):
    """What accesses of a block have in common."""

    def check_indices(self, tile: Attribute) -> None:
        described = self.desc.type.tile
        if len(self.indices) != len(shape_of(described)):
            raise VerifyException(f"{self.name} of {self.desc.type} has {len(self.indices)} offsets")
        if not is_block(tile, self.desc.type):
            raise VerifyException(f"{self.name}: blocks of {self.desc.type} are not {tile}")


@irdl_op_definition
class DescriptorLoadOp(_BlockAccess):
    """Loads the block at these offsets."""

    name = "tt.descriptor_load"
    desc = operand_def(TensorDescType)
    indices = var_operand_def(i32)
    result = result_def(TensorType)
    cache = prop_def(member_of(CacheModifier))
    evict = prop_def(member_of(EvictionPolicy))

    def __init__(self, desc: SSAValue, indices: Sequence[SSAValue], shape: Sequence[int] | None = None):
        """`shape`: that of the block, or without dimensions of extent 1 that it begins with."""
        tile = desc.type.tile
        super().__init__(
            operands=[desc, list(indices)],
            result_types=[TensorType(tile.element_type, shape if shape is not None else tile.get_shape())],
            properties={
                "cache": IntegerAttr(CacheModifier.NONE, i32),
                "evict": IntegerAttr(EvictionPolicy.NORMAL, i32),
            },
        )

    def effects(self) -> list[Effect]:
        return [reads(GLOBAL, self.desc)]

    def verify_(self) -> None:
        self.check_indices(self.result.type)


@irdl_op_definition
class DescriptorStoreOp(_BlockAccess):
    """Stores a block at these offsets."""

    name = "tt.descriptor_store"
    desc = operand_def(TensorDescType)
    src = operand_def(TensorType)
    indices = var_operand_def(i32)

    def __init__(self, desc: SSAValue, src: SSAValue, indices: Sequence[SSAValue]):
        super().__init__(operands=[desc, src, list(indices)])

    def effects(self) -> list[Effect]:
        return [writes(GLOBAL, self.desc)]

    def verify_(self) -> None:
        self.check_indices(self.src.type)


@irdl_op_definition
class DescriptorReduceOp(_BlockAccess):
    """Combines a block into memory at these offsets, each element atomically (relaxed)."""

    name = "tt.descriptor_reduce"
    kind = prop_def(member_of(DescriptorReduceKind))
    desc = operand_def(TensorDescType)
    src = operand_def(TensorType)
    indices = var_operand_def(i32)

    def __init__(self, kind: DescriptorReduceKind, desc: SSAValue, src: SSAValue, indices: Sequence[SSAValue]):
        super().__init__(operands=[desc, src, list(indices)], properties={"kind": IntegerAttr(kind, i32)})

    def effects(self) -> list[Effect]:
        return [reads(GLOBAL, self.desc), writes(GLOBAL, self.desc)]

    def verify_(self) -> None:
        self.check_indices(self.src.type)


class _RowAccess(IRDLOperation):
    """What accesses of rows have in common: through a descriptor of two dimensions whose block is a part of one row."""

    def check_rows(self, tile: Attribute) -> None:
        block, rows = shape_of(self.desc.type.tile), shape_of(self.x_offsets.type)
        if len(block) != 2 or block[0] != 1:
            raise VerifyException(f"{self.name} accesses parts of rows, got {self.desc.type}")
        if len(rows) != 1 or element_type_of(self.x_offsets.type) != i32:
            raise VerifyException(f"{self.name} needs a vector of rows of i32, got {self.x_offsets.type}")
        if tile != TensorType(self.desc.type.tile.element_type, [rows[0], block[1]]):
            raise VerifyException(f"{self.name}: {rows[0]} rows of {self.desc.type} are not {tile}")


@irdl_op_definition
class DescriptorGatherOp(_RowAccess):
    """Loads parts of rows, which begin at one column."""

    name = "tt.descriptor_gather"
    desc = operand_def(TensorDescType)
    x_offsets = operand_def(TensorType)
    y_offset = operand_def(i32)
    result = result_def(TensorType)

    def __init__(self, desc: SSAValue, x_offsets: SSAValue, y_offset: SSAValue):
        tile = desc.type.tile
        shape = [shape_of(x_offsets.type)[0], shape_of(tile)[-1]]
        super().__init__(operands=[desc, x_offsets, y_offset], result_types=[TensorType(tile.element_type, shape)])

    def effects(self) -> list[Effect]:
        return [reads(GLOBAL, self.desc)]

    def verify_(self) -> None:
        self.check_rows(self.result.type)


@irdl_op_definition
class DescriptorScatterOp(_RowAccess):
    """Stores parts of rows, which begin at one column. Of equal rows any is stored."""

    name = "tt.descriptor_scatter"
    desc = operand_def(TensorDescType)
    x_offsets = operand_def(TensorType)
    y_offset = operand_def(i32)
    src = operand_def(TensorType)

    def __init__(self, desc: SSAValue, x_offsets: SSAValue, y_offset: SSAValue, src: SSAValue):
        super().__init__(operands=[desc, x_offsets, y_offset, src])

    def effects(self) -> list[Effect]:
        return [writes(GLOBAL, self.desc)]

    def verify_(self) -> None:
        self.check_rows(self.src.type)


_FLOAT_KINDS = {
    DescriptorReduceKind.ADD: AtomicKind.FADD,
    DescriptorReduceKind.MIN: AtomicKind.FMIN,
    DescriptorReduceKind.MAX: AtomicKind.FMAX,
}
_ATOMIC_KINDS = {
    DescriptorReduceKind.ADD: AtomicKind.ADD,
    DescriptorReduceKind.AND: AtomicKind.AND,
    DescriptorReduceKind.OR: AtomicKind.OR,
    DescriptorReduceKind.XOR: AtomicKind.XOR,
}


def atomic_kind(kind: DescriptorReduceKind, type: TensorDescType) -> AtomicKind:
    """The atomic that does to one element what a reduction does."""
    if is_float(type.tile):
        return _FLOAT_KINDS[kind]
    if kind == DescriptorReduceKind.MIN:
        return AtomicKind.MIN if type.is_signed else AtomicKind.UMIN
    if kind == DescriptorReduceKind.MAX:
        return AtomicKind.MAX if type.is_signed else AtomicKind.UMAX
    return _ATOMIC_KINDS[kind]


BlockAccess = DescriptorLoadOp | DescriptorStoreOp | DescriptorReduceOp
RowAccess = DescriptorGatherOp | DescriptorScatterOp


def descriptor_of(op: Operation) -> MakeTensorDescriptorOp:
    """What an access goes through."""
    made = op.desc.owner
    if not isinstance(made, MakeTensorDescriptorOp):
        raise VerifyException(f"{op.name}: the descriptor is not made by tt.make_tensor_descriptor in this function")
    return made


TYPES = [TensorDescType]
OPS = [
    MakeTensorDescriptorOp,
    DescriptorLoadOp,
    DescriptorStoreOp,
    DescriptorReduceOp,
    DescriptorGatherOp,
    DescriptorScatterOp,
]
