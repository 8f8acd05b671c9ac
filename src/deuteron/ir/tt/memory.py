"""Memory: `tt.addptr`, `tt.load`, `tt.store`.

    %p = "tt.addptr"(%base, %offsets) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %v = "tt.load"(%p, %mask, %other) <{operandSegmentSizes = array<i32: 1, 1, 1>, boundaryCheck = array<i32>,
             cache = 1 : i32, evict = 1 : i32, isVolatile = false}> : (...) -> tensor<64xf32>

Offsets count elements. Lanes whose mask is false are not accessed; a load gives them `other`, or an unspecified value.
Through a block pointer (block_pointer.py) an access has no mask: what lies out of bounds in the dimensions of
`boundaryCheck` is not accessed, and a load gives 0 for it, or NaN where `padding` is 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from math import copysign
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.arith import constant_value
from deuteron.ir.effects import GLOBAL, Effect, orders, reads, writes
from deuteron.ir.member import member_of
from deuteron.ir.types import (
    block_of,
    i1,
    i32,
    is_block_pointer,
    is_integer,
    is_pointer,
    is_same_tile_of,
    pointee_of,
    shape_of,
    with_element_type,
)

# Of a load: what comes after it is not computed before it is on its way.
KEEPS_ORDER = "tt.keeps_order"


class CacheModifier(IntEnum):
    """Where a load or store goes through the caches."""

    NONE = 1
    CA = 2
    CG = 3
    WB = 4
    CS = 5
    WT = 6
    CV = 7


class EvictionPolicy(IntEnum):
    """How long a line should stay in the cache."""

    NORMAL = 1
    EVICT_FIRST = 2
    EVICT_LAST = 3


EVICTION_WORDS = {policy: policy.name.lower() for policy in EvictionPolicy} | {EvictionPolicy.NORMAL: "evict_normal"}


@irdl_attr_definition
class CachePolicyAttr(ParametrizedAttribute):
    """Both of them, as Triton has them from 3.9 on: `#tt.cache_policy<cache_modifier = cg, eviction_policy = ...>`."""

    name = "tt.cache_policy"

    cache: IntAttr = param_def()
    evict: IntAttr = param_def()

    def print_parameters(self, printer: Printer) -> None:
        cache = CacheModifier(self.cache.data).name.lower()
        evict = EVICTION_WORDS[EvictionPolicy(self.evict.data)]
        with printer.in_angle_brackets():
            printer.print_string(f"cache_modifier = {cache}, eviction_policy = {evict}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            parser.parse_keyword("cache_modifier")
            parser.parse_punctuation("=")
            cache = parser.parse_keyword_in([modifier.name.lower() for modifier in CacheModifier])
            parser.parse_punctuation(",")
            parser.parse_keyword("eviction_policy")
            parser.parse_punctuation("=")
            evict = parser.parse_keyword_in(EVICTION_WORDS.values())
        policies = {word: policy for policy, word in EVICTION_WORDS.items()}
        return IntAttr(CacheModifier[cache.upper()]), IntAttr(policies[evict])


class Padding(IntEnum):
    """What is loaded from out of bounds of a tensor."""

    ZERO = 1
    NAN = 2


def check_access(op: IRDLOperation, pointer: SSAValue, value_type: Attribute, mask: SSAValue | None) -> None:
    """A memory access takes pointers, values of the pointee type and a mask, all of one shape."""
    if not is_pointer(pointer.type) or is_block_pointer(pointer.type):
        raise VerifyException(f"{op.name} needs a pointer, got {pointer.type}")
    if not is_same_tile_of(value_type, pointer.type, pointee_of(pointer.type)):
        raise VerifyException(f"{op.name}: a pointer of type {pointer.type} does not go with values of {value_type}")
    if mask is not None and not is_same_tile_of(mask.type, pointer.type, i1):
        raise VerifyException(f"{op.name}: the mask is {mask.type}, the pointer is {pointer.type}")


def check_plain_or_block(op: LoadOp | StoreOp, value_type: Attribute) -> None:
    """A load or store is through plain pointers, or through a block pointer and without a mask."""
    if not is_block_pointer(op.ptr.type):
        check_access(op, op.ptr, value_type, op.mask)
    elif value_type != block_of(op.ptr.type):
        raise VerifyException(f"{op.name}: a pointer of type {op.ptr.type} does not go with values of {value_type}")
    elif op.mask is not None:
        raise VerifyException(f"{op.name}: through a block pointer there is no mask")
    rank = len(shape_of(block_of(op.ptr.type))) if is_block_pointer(op.ptr.type) else 0
    for axis in checked_axes(op):
        if not 0 <= axis < rank:
            raise VerifyException(f"{op.name} through {op.ptr.type} has no dimension {axis} to check")


def checked_axes(op: LoadOp | StoreOp) -> tuple[int, ...]:
    """The dimensions in which an access through a block pointer is checked."""
    return tuple(op.boundary_check.get_values()) if op.boundary_check is not None else ()


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """Advances pointers by offsets, counted in elements of what they point to."""

    name = "tt.addptr"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    ptr = operand_def(_T)
    offset = operand_def()
    result = result_def(_T)
    traits = traits_def(Pure())

    def __init__(self, ptr: SSAValue, offset: SSAValue):
        super().__init__(operands=[ptr, offset], result_types=[ptr.type])

    def verify_(self) -> None:
        if not is_pointer(self.ptr.type) or is_block_pointer(self.ptr.type) or not is_integer(self.offset.type):
            raise VerifyException(f"tt.addptr adds integers to pointers, got {self.ptr.type} and {self.offset.type}")
        if shape_of(self.ptr.type) != shape_of(self.offset.type):
            raise VerifyException(f"tt.addptr: shapes differ, {self.ptr.type} and {self.offset.type}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Loads through a pointer or a tile of pointers."""

    name = "tt.load"
    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    padding = opt_prop_def(member_of(Padding))
    cache = prop_def(member_of(CacheModifier))
    evict = prop_def(member_of(EvictionPolicy))
    is_volatile = prop_def(IntegerAttr, prop_name="isVolatile")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        ptr: SSAValue,
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
        is_volatile: bool = False,
        boundary_check: Sequence[int] = (),
        padding: Padding | None = None,
    ):
        super().__init__(
            operands=[ptr, [mask] if mask else [], [other] if other else []],
            result_types=[with_element_type(ptr.type, pointee_of(ptr.type))],
            properties={
                "boundaryCheck": DenseArrayBase.from_list(i32, list(boundary_check)),
                **({"padding": IntegerAttr(padding, i32)} if padding else {}),
                "cache": IntegerAttr(cache, i32),
                "evict": IntegerAttr(evict, i32),
                "isVolatile": IntegerAttr(int(is_volatile), i1),
            },
        )

    @property
    def pads_with_nan(self) -> bool:
        """Whether NaN is loaded from out of bounds, not 0."""
        return self.padding is not None and self.padding.value.data == Padding.NAN

    @property
    def gives_zeros(self) -> bool:
        """Whether the tile is +0 where the mask is off, or may be."""
        if self.other is None:
            return True
        other = constant_value(self.other)
        return other == 0 and copysign(1, other) > 0

    def effects(self) -> list[Effect]:
        return [reads(GLOBAL, self.ptr), *(orders() if self.is_volatile.value.data else [])]

    def verify_(self) -> None:
        check_plain_or_block(self, self.result.type)
        if self.other is not None and self.other.type != self.result.type:
            raise VerifyException(f"tt.load: `other` is {self.other.type}, the result is {self.result.type}")
        if self.other is not None and self.mask is None:
            raise VerifyException("tt.load: `other` without a mask")
        if self.pads_with_nan and is_integer(self.result.type):
            raise VerifyException("tt.load: integers are not padded with NaN")


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Stores through a pointer or a tile of pointers."""

    name = "tt.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    boundary_check = opt_prop_def(DenseArrayBase, prop_name="boundaryCheck")
    cache = prop_def(member_of(CacheModifier))
    evict = prop_def(member_of(EvictionPolicy))

    def __init__(
        self,
        ptr: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
        boundary_check: Sequence[int] = (),
    ):
        super().__init__(
            operands=[ptr, value, [mask] if mask else []],
            properties={
                "boundaryCheck": DenseArrayBase.from_list(i32, list(boundary_check)),
                "cache": IntegerAttr(cache, i32),
                "evict": IntegerAttr(evict, i32),
            },
        )

    def effects(self) -> list[Effect]:
        return [writes(GLOBAL, self.ptr)]

    def verify_(self) -> None:
        check_plain_or_block(self, self.value.type)


ATTRIBUTES = [CachePolicyAttr]
OPS = [AddPtrOp, LoadOp, StoreOp]
