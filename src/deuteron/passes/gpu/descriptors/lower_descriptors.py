"""Lowers accesses of blocks of tensors to copies by TMA through shared memory.

    %x = "tt.descriptor_load"(%d, %i, %j)          %m, %bar = "ttg.local_alloc"()
                                                   "ttng.init_barrier"(%bar) <{count = 1}>
                                                   "ttng.barrier_expect"(%bar, %true) <{size = 8192}>
                                            ->     "ttng.async_tma_copy_global_to_local"(%d, %i, %j, %bar, %m, %true)
                                                   "ttng.wait_barrier"(%bar, %0, %m)
                                                   "ttng.inval_barrier"(%bar)
                                                   %x = "ttg.local_load"(%m)
    "tt.descriptor_store"(%d, %y, %i, %j)          %n = "ttg.local_alloc"(%y)
                                                   "ttng.fence_async_shared"()
                                            ->     "ttng.async_tma_copy_local_to_global"(%d, %i, %j, %n)
                                                   "ttng.async_tma_store_wait"() <{pendings = 0, read_only}>

Loads that follow each other are waited for together. What reads a block as it lies in shared memory reads it there. A
store is waited for at once, for its memory is used for other things then; where the tensor is also read, until it is
done, and so before one that may write to the same place (`analysis/aliasing`), or where what follows keeps accesses in
order: an atomic may tell others that the block is there. The only store of a loop that keeps no order, whose memory
nothing else could use, is waited for before the next one:

    "scf.for" ... ({                               %n = "ttg.local_alloc"()
      ...                                          "scf.for" ... ({
      "tt.descriptor_store"(%d, %y, %i, %j)          ...
    })                                      ->       "ttng.async_tma_store_wait"() <{pendings = 0, read_only}>
                                                     "ttg.local_store"(%y, %n)
                                                     "ttng.fence_async_shared"()
                                                     "ttng.async_tma_copy_local_to_global"(%d, %i, %j, %n)
                                                   })
                                                   "ttng.async_tma_store_wait"() <{pendings = 0, read_only}>

Barriers between threads come later.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from deuteron.analysis.aliasing.program_order import ProgramOrder
from deuteron.analysis.aliasing.tma_stores import stores_that_wait
from deuteron.analysis.aliasing.written_arguments import touched_arguments, written_by
from deuteron.analysis.shared_memory.descriptor_buffers import block_buffer, block_bytes, load_buffer
from deuteron.analysis.shared_memory.shared_liveness import shared_buffers
from deuteron.ir.builder import Builder
from deuteron.ir.effects import GLOBAL, ORDER, READ, effects_inside, is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import (
    DescriptorLoadOp,
    DescriptorReduceKind,
    DescriptorReduceOp,
    DescriptorStoreOp,
)
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.shared import LocalAllocOp, LocalDeallocOp, LocalStoreOp
from deuteron.ir.ttng.fence import FenceAsyncSharedOp
from deuteron.ir.ttng.mbarrier import (
    BarrierExpectOp,
    FenceMBarrierInitOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
    barrier_type,
)
from deuteron.ir.ttng.tma import (
    AsyncTMACopyGlobalToLocalOp,
    AsyncTMACopyLocalToGlobalOp,
    AsyncTMAReduceOp,
    AsyncTMAStoreWaitOp,
)
from deuteron.ir.types import i1, i32
from deuteron.passes.gpu.memory.allocate_shared import bytes_of
from deuteron.passes.gpu.rings.ring import read_from
from deuteron.passes.rewrite import erase


class LowerDescriptors(ModulePass):
    """Makes copies by TMA of the accesses that are left."""

    name = "lower-descriptors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            _lower(func)


def _lower(func: FuncOp) -> None:
    loads = nested_ops(func, DescriptorLoadOp)
    stores = nested_ops(func, DescriptorStoreOp | DescriptorReduceOp)
    read = touched_arguments((effect for op, effect in effects_inside(func) if op not in stores), READ)
    order = ProgramOrder(func, _keeping_order(func))
    for block in dict.fromkeys(op.parent for op in loads):
        for group in list(_groups(block)):
            _load(group)
    waiting = stores_that_wait(func, stores)
    for store in stores:
        is_read, loop = written_by(store).shares(read), _outermost_loop(store)  # of other arguments: tma_accesses.py
        is_told = bool(order.after(store))
        is_alone = loop is not None and sum(other in stores for other in nested_ops(loop)) == 1
        if is_alone and not is_read and not _keeping_order(loop) and _keeps_its_memory(store, func):
            _store_until_next(store, loop, store in waiting, is_told)
        else:
            _store(store, is_read or is_told, store in waiting)


def _keeping_order(op: Operation) -> list[Operation]:
    """The ops in a function or a loop over which no access of global memory moves, as others may wait for it."""
    found = (inner for inner, effect in effects_inside(op) if effect.kind is ORDER and effect.resource is GLOBAL)
    return list(dict.fromkeys(found))


def _outermost_loop(op: Operation) -> scf.ForOp | None:
    """Of those around an op, within the warps that execute it."""
    found, parent = None, op.parent_op()
    while isinstance(parent, scf.ForOp | scf.IfOp):
        found = parent if isinstance(parent, scf.ForOp) else found
        parent = parent.parent_op()
    return found


def _keeps_its_memory(store: Operation, func: FuncOp) -> bool:
    """Whether a function needs no more shared memory if nothing else uses that of a store."""
    buffers = shared_buffers(func)
    others = [buffer for buffer in buffers if buffer.op is not store]
    return bytes_of(others) + sum(buffer.size for buffer in buffers if buffer.op is store) <= bytes_of(buffers)


def _groups(block: Block) -> Iterator[list[DescriptorLoadOp]]:
    """Loads with nothing in between that needs one of them, or that has an effect."""
    group: list[DescriptorLoadOp] = []
    for op in block.ops:
        if group and not (isinstance(op, DescriptorLoadOp) or (is_pure(op) and not _uses(op, group))):
            yield group
            group = []
        if isinstance(op, DescriptorLoadOp):
            if any(_uses(op, [other]) for other in group):
                yield group
                group = []
            group.append(op)
    if group:
        yield group


def _uses(op: Operation, group: list[DescriptorLoadOp]) -> bool:
    results = [load.result for load in group]
    return any(operand in results for inner in nested_ops(op) for operand in inner.operands)


def _load(group: list[DescriptorLoadOp]) -> None:
    """The copies are where the last of the loads is."""
    b = Builder.before(group[-1])
    types = [load_buffer(load) for load in group]
    buffers = [b.value(LocalAllocOp(type)) for type in types]
    barrier = b.value(LocalAllocOp(barrier_type()))
    b.insert(InitBarrierOp(barrier, 1))
    b.insert(FenceMBarrierInitOp())
    b.insert(FenceAsyncSharedOp())
    always = b.constant(True, i1)
    b.insert(BarrierExpectOp(barrier, always, sum(map(block_bytes, types))))
    for load, buffer in zip(group, buffers, strict=True):
        buffer.name_hint = load.result.name_hint
        b.location = load.location
        b.insert(AsyncTMACopyGlobalToLocalOp(load.desc, load.indices, barrier, buffer, always))
    b.insert(WaitBarrierOp(barrier, b.constant(0, i32), buffers))
    b.insert(InvalBarrierOp(barrier))
    for load, buffer in zip(group, buffers, strict=True):
        b.location = load.location
        read_from(buffer, load, b)


def _store(op: DescriptorStoreOp | DescriptorReduceOp, until_done: bool, waits: bool) -> None:
    b = Builder.before(op)
    if waits:
        b.insert(AsyncTMAStoreWaitOp(0))
    buffer = b.value(LocalAllocOp(block_buffer(op.src.type), op.src))
    b.insert(FenceAsyncSharedOp())
    b.insert(_copy(op, buffer))
    b.insert(AsyncTMAStoreWaitOp(0, read_only=not until_done))
    erase(op)


def _store_until_next(
    op: DescriptorStoreOp | DescriptorReduceOp, loop: scf.ForOp, waits: bool, until_done: bool
) -> None:
    """The loop goes on while the block is stored."""
    buffer = Builder.before(loop).value(LocalAllocOp(block_buffer(op.src.type)))
    b = Builder.before(op)
    b.insert(AsyncTMAStoreWaitOp(0, read_only=not waits))
    b.insert(LocalStoreOp(op.src, buffer))
    b.insert(FenceAsyncSharedOp())
    b.insert(_copy(op, buffer))
    after = Builder.after(loop)
    after.insert(AsyncTMAStoreWaitOp(0, read_only=not until_done))
    after.insert(LocalDeallocOp(buffer))
    erase(op)


def _copy(op: DescriptorStoreOp | DescriptorReduceOp, buffer: SSAValue) -> Operation:
    if isinstance(op, DescriptorStoreOp):
        return AsyncTMACopyLocalToGlobalOp(op.desc, op.indices, buffer)
    return AsyncTMAReduceOp(DescriptorReduceKind(op.kind.value.data), op.desc, op.indices, buffer)
