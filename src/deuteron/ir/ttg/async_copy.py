"""Copies from global to shared memory that run on while their threads go on: cp.async, in groups that are waited for.

    %t = "ttg.async_copy_global_to_local"(%pointers, %buffer, %mask) ... : (...) -> !ttg.async.token
    %g = "ttg.async_commit_group"(%t) : (!ttg.async.token) -> !ttg.async.token
    %w = "ttg.async_wait"(%g) <{num = 1 : i32}> : (!ttg.async.token) -> !ttg.async.token

A wait lets a thread go on when all but its last `num` groups are done. What other threads copied is there after a
barrier as well. Where the mask is off, zeros are written. Tokens say for the reader what is waited for; the order of
the ops is what counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.effects import GLOBAL, OTHER, SHARED, Effect, orders, reads, writes
from deuteron.ir.member import member_of
from deuteron.ir.tt.memory import CacheModifier, EvictionPolicy, check_access
from deuteron.ir.ttg.layout import MemDescType
from deuteron.ir.ttg.shared import check_same_tile
from deuteron.ir.types import i1, i32, is_pointer, pointee_of, with_element_type


@irdl_attr_definition
class AsyncTokenType(ParametrizedAttribute, TypeAttribute):
    """Stands for copies under way."""

    name = "ttg.async.token"


TOKEN = AsyncTokenType()


@irdl_op_definition
class AsyncCopyGlobalToLocalOp(IRDLOperation):
    """Starts to copy a tile into shared memory; zeros where the mask is off."""

    name = "ttg.async_copy_global_to_local"
    src = operand_def()
    dst = operand_def(MemDescType)
    mask = opt_operand_def()
    other = opt_operand_def()
    token = result_def(AsyncTokenType)
    cache = prop_def(member_of(CacheModifier))
    evict = prop_def(member_of(EvictionPolicy))
    is_volatile = prop_def(IntegerAttr, prop_name="isVolatile")
    contiguity = prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        src: SSAValue,
        dst: SSAValue,
        mask: SSAValue | None = None,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
    ):
        super().__init__(
            operands=[src, dst, [mask] if mask else [], []],
            result_types=[TOKEN],
            properties={
                "cache": IntegerAttr(cache, i32),
                "evict": IntegerAttr(evict, i32),
                "isVolatile": IntegerAttr(0, i1),
                "contiguity": IntegerAttr(1, i32),
            },
        )

    def effects(self) -> list[Effect]:
        return [reads(GLOBAL, self.src), writes(SHARED, self.dst), writes(OTHER)]

    def verify_(self) -> None:
        if not is_pointer(self.src.type):
            raise VerifyException(f"{self.name} needs a pointer, got {self.src.type}")
        tile = with_element_type(self.src.type, pointee_of(self.src.type))
        check_access(self, self.src, tile, self.mask)
        check_same_tile(self, self.dst.type, tile)
        if self.other is not None:
            raise VerifyException(f"{self.name} writes zeros where the mask is off, it takes no `other`")


@irdl_op_definition
class AsyncCommitGroupOp(IRDLOperation):
    """Makes a group of a thread's copies since its last group."""

    name = "ttg.async_commit_group"
    tokens = var_operand_def(AsyncTokenType)
    token = result_def(AsyncTokenType)

    def __init__(self, tokens: Sequence[SSAValue]):
        super().__init__(operands=[list(tokens)], result_types=[TOKEN])

    def effects(self) -> list[Effect]:
        return [writes(OTHER)]


@irdl_op_definition
class AsyncWaitOp(IRDLOperation):
    """Waits until all but the last `num` groups of a thread are done."""

    name = "ttg.async_wait"
    tokens = var_operand_def(AsyncTokenType)
    token = result_def(AsyncTokenType)
    num = prop_def(IntegerAttr)

    def __init__(self, num: int, tokens: Sequence[SSAValue] = ()):
        super().__init__(operands=[list(tokens)], result_types=[TOKEN], properties={"num": IntegerAttr(num, i32)})

    def effects(self) -> list[Effect]:
        return [writes(OTHER), *orders(resources=[SHARED])]

    def verify_(self) -> None:
        if self.num.value.data < 0:
            raise VerifyException(f"ttg.async_wait waits for all but 0 or more groups, got {self.num.value.data}")


ATTRIBUTES = [AsyncTokenType]
OPS = [AsyncCopyGlobalToLocalOp, AsyncCommitGroupOp, AsyncWaitOp]
