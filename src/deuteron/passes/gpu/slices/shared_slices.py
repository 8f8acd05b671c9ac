"""Slices of tiles in shared memory are loaded where they are needed, and stored where they are made.

%x = ttg.local_load %m : 64x64          ->      %s = ttg.memdesc_slice %m, %slice : 4x64
                                                %y = ttg.local_load %s

%m = ttg.local_alloc %x : 64x64         ->      %m = ttg.local_alloc
                                                ttg.local_store %x, %m, which is done in slices as a store is
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.effects import READ, SHARED, Effect, effects_of
from deuteron.ir.nested import nested_ops
from deuteron.ir.ttg.memdesc_subslice import MemDescSliceOp
from deuteron.ir.ttg.private import slice_type
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp, LocalStoreOp
from deuteron.ir.ttg.views import viewed
from deuteron.passes.gpu.slices.costs import registers_of
from deuteron.passes.rewrite import replace


def store_after_alloc(func: Operation, least_registers: int) -> None:
    """Memory that a tile of so many registers fills is allocated first, so that loops can fill it in slices."""
    for alloc in nested_ops(func, LocalAllocOp):
        if alloc.src is not None and registers_of(alloc.src) >= least_registers:
            b = Builder.before(alloc)
            memory = b.value(LocalAllocOp(alloc.result.type))
            b.insert(LocalStoreOp(alloc.src, memory))
            replace(alloc, [memory])


def load_slice(b: Builder, load: LocalLoadOp, axis: int, count: int, index: SSAValue) -> SSAValue:
    part = slice_of(b, load.src, axis, count, index)
    return b.value(LocalLoadOp(part, slice_type(load.result.type, axis, count)))


def slice_of(b: Builder, memory: SSAValue, axis: int, count: int, index: SSAValue) -> SSAValue:
    """One of as many slices of a tile in shared memory."""
    return b.value(MemDescSliceOp(memory, index, axis, count))


def holds_until(load: LocalLoadOp, user: Operation) -> bool:
    """Whether an op may load what was loaded before: the memory is not written between them, nor by the op itself, or
    by what it is in.
    """
    user = load.parent.find_ancestor_op_in_block(user)
    op: Operation | None = load.next_op
    while op is not None:
        if any(_may_write(effect, load.src) for effect in effects_of(op)):
            return False
        if op is user:
            return True
        op = op.next_op
    return False


def _may_write(effect: Effect, memory: SSAValue) -> bool:
    """Whether shared memory is written that may be this one: no two allocations in use overlap."""
    if effect.resource is not SHARED or effect.kind is READ:
        return False
    written = effect.value and viewed(effect.value)
    both = [written, viewed(memory)]
    is_apart = all(value and isinstance(value.owner, LocalAllocOp) for value in both) and written is not both[1]
    return not is_apart
