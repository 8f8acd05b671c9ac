"""Slices of tiles in shared memory are loaded where they are needed.

%x = ttg.local_load %m : 64x64          ->      %s = ttg.memdesc_slice %m, %slice : 4x64
                                                %y = ttg.local_load %s
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.effects import READ, SHARED, Effect, effects_of
from deuteron.ir.ttg.memdesc_subslice import MemDescSliceOp
from deuteron.ir.ttg.private import slice_type
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp


def load_slice(b: Builder, load: LocalLoadOp, axis: int, count: int, index: SSAValue) -> SSAValue:
    part = b.value(MemDescSliceOp(load.src, index, axis, count))
    return b.value(LocalLoadOp(part, slice_type(load.result.type, axis, count)))


def holds_until(load: LocalLoadOp, user: Operation) -> bool:
    """Whether an op may load what was loaded before: the memory is not written between them."""
    op: Operation | None = load.next_op
    while op is not None and op is not user:
        if not isinstance(op, LocalAllocOp) and any(_may_write_shared(effect) for effect in effects_of(op)):
            return False
        op = op.next_op
    return op is user


def _may_write_shared(effect: Effect) -> bool:
    return effect.resource is SHARED and effect.kind is not READ
