"""Which loads of a loop are done ahead of their iteration, and the shared layout of those that are copied.

    load -> (anything without a region) -> operand of a product        copied
    load, in a loop with tl.range(num_stages=...) and no product       copied
    fewer than 4 neighbouring bytes in a thread, a tile that is transposed on its way, `other` that is not 0
                                                                       into registers, if they are few
    an address that depends on a load, volatile; a store to the same argument, an atomic in the loop
                                                                       stays

A barrier orders what the program itself stores, so that it holds up no load from elsewhere. A load that is not copied
is left with a remark that says why.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from deuteron.analysis.access_vectors import ASYNC_COPY_BYTES, access_vectors, copy_vectors
from deuteron.analysis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.written_arguments import is_apart, written_arguments
from deuteron.ir.tt.descriptor import DescriptorLoadOp, DescriptorStoreOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.ttg.layout import MemDescType, SharedLinearEncodingAttr, layout_of
from deuteron.ir.ttg.shared import LocalAllocOp, LocalLoadOp
from deuteron.ir.types import byte_width_of, element_type_of, is_tile, shape_of
from deuteron.layout.linear import REGISTER
from deuteron.layout.shared import mma_shared, row_major
from deuteron.passes.gpu.pipelining.run_ahead import Ahead, addresses_of
from deuteron.passes.remarks import remark

PRODUCTS = ("tt.dot", "ttng.warp_group_dot")
MAX_PREFETCHED_BYTES = 128
INTO_REGISTERS = "one iteration ahead, into registers"
_LOCAL_OPS = (LoadOp, StoreOp, LocalAllocOp, LocalLoadOp, BarrierOp, DescriptorLoadOp, DescriptorStoreOp)


@dataclass(frozen=True)
class PipelinedLoad:
    """A load, and the type of the buffers that it is copied into."""

    load: LoadOp | DescriptorLoadOp
    buffer: MemDescType

    @property
    def is_read_in_place(self) -> bool:
        """Whether the buffer is what every allocation that takes the tile would be."""
        takers = (use.operation for use in self.load.result.uses)
        return all(op.result.type == self.buffer for op in takers if isinstance(op, LocalAllocOp))


def loads_to_pipeline(
    loop: scf.ForOp, info: AxisInfoAnalysis, also_without_product: bool
) -> tuple[list[PipelinedLoad], list[LoadOp]]:
    """The loads of an innermost loop to copy ahead, and those to load into registers ahead."""
    copied, kept, room = [], [], MAX_PREFETCHED_BYTES
    for load in _candidates(loop, also_without_product):
        buffer = buffer_type(load, info)
        obstacle = obstacle_to_copies(load, buffer, info)
        if obstacle is None:
            copied.append(PipelinedLoad(load, buffer))
        elif _bytes_per_thread(load) <= room:
            remark(load, f"{INTO_REGISTERS}: {obstacle}")
            kept.append(load)
            room -= _bytes_per_thread(load)
        else:
            remark(load, f"{obstacle}, and {_bytes_per_thread(load)} bytes a thread are too many to load ahead")
    return copied, kept


def _candidates(loop: scf.ForOp, also_without_product: bool) -> list[LoadOp]:
    """The loads that may run ahead; the others get a remark."""
    without_product = also_without_product and not any(op.name in PRODUCTS for op in loop.body.block.ops)
    written = written_arguments(loop)
    of_loop, found = _obstacle_in_loop(loop), []
    for op in loop.walk():
        if not isinstance(op, LoadOp) or not is_tile(op.result.type):
            continue
        obstacle = of_loop or _obstacle_of(op, loop, written, without_product)
        if obstacle is None:
            found.append(op)
        else:
            remark(op, obstacle)
    return found


def _obstacle_in_loop(loop: scf.ForOp) -> str | None:
    if has_inner_loop(loop):
        return "the loop is not an innermost one"
    return None if may_run_ahead(loop) else "an atomic or a print orders the iterations"


def _obstacle_of(load: LoadOp, loop: scf.ForOp, written: set[SSAValue | None], without_product: bool) -> str | None:
    """What keeps a load from running ahead, in words."""
    if load.parent is not loop.body.block:
        return "it is in a branch"
    if load.is_volatile.value.data:
        return "it is volatile"
    if not is_apart(load, written):
        return "the loop stores to the same argument"
    if without_product and not _is_used(load.result):
        return "nothing reads it"
    if not without_product and not feeds_product(load.result):
        return "no product reads it; tl.range(num_stages=...) pipelines loops without one"
    return None if Ahead(loop, addresses_of(load)).is_pure else "its address depends on a load"


def _bytes_per_thread(load: LoadOp) -> int:
    """An element narrower than a register takes one all the same."""
    return max(byte_width_of(load.result.type), 4) * layout_of(load.result.type).in_size(REGISTER)


def _is_used(value: SSAValue) -> bool:
    return bool(list(value.uses))


def has_inner_loop(loop: scf.ForOp) -> bool:
    """Whether it is not an innermost loop."""
    return any(inner is not loop and isinstance(inner, scf.ForOp | scf.WhileOp) for inner in loop.walk())


def may_run_ahead(op: Operation, besides: tuple[type[Operation], ...] = ()) -> bool:
    """Whether nothing in a loop or function, besides ops of these kinds, orders its accesses of memory."""
    unordered = (*_LOCAL_OPS, *besides)
    return not any(
        (inner.has_trait(MemoryWriteEffect) or inner.has_trait(MemoryReadEffect)) and not isinstance(inner, unordered)
        for inner in op.walk()
        if not inner.name.startswith("ttng.")
    )


def obstacle_to_copies(load: LoadOp, buffer: MemDescType, info: AxisInfoAnalysis) -> str | None:
    """What keeps a load from being copied into shared memory, in words.

    A tile that is transposed on its way there would be copied word by word.
    """
    if not load.gives_zeros:
        return "it is not 0 where it is masked off"
    layout, size = layout_of(load.ptr.type), byte_width_of(load.result.type)
    mask = info.of(load.mask) if load.mask is not None else None
    accesses = access_vectors(layout, info.of(load.ptr), mask, size)
    copies = copy_vectors(layout, layout_of(buffer), info.of(load.ptr), mask, size)
    if copies is not None and len(copies) == len(accesses):
        return None
    if copies is None and size * len(accesses[0]) < min(ASYNC_COPY_BYTES):
        return f"a copy takes {min(ASYNC_COPY_BYTES)} bytes or more, an access {size * len(accesses[0])}"
    return "neighbours in memory are not neighbours in shared memory"


def feeds_product(value: SSAValue) -> bool:
    """Whether a value becomes an operand of a product through ops of its block without regions."""
    seen, pending = {value}, [value]
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if user.name in PRODUCTS:
                if use.index < 2:
                    return True
                continue
            if not user.regions and not isinstance(user, LoadOp):
                fresh = [result for result in user.results if result not in seen]
                seen.update(fresh)
                pending += fresh
    return False


def buffer_type(load: LoadOp, info: AxisInfoAnalysis) -> MemDescType:
    """That of the allocation which takes the tile; else the one from which products read best."""
    for use in load.result.uses:
        if isinstance(use.operation, LocalAllocOp) and use.operation.parent_block() is load.parent_block():
            return use.operation.result.type
    shape, contiguity = shape_of(load.result.type), info.of(load.ptr).contiguity
    order = sorted(range(len(shape)), key=lambda axis: (-min(contiguity[axis], shape[axis]), -axis))
    element = element_type_of(load.result.type)
    layout = mma_shared(shape, order[0], byte_width_of(element)) if len(shape) == 2 else row_major(shape, order)
    return MemDescType(TensorType(element, shape, SharedLinearEncodingAttr(layout, 1024 if len(shape) == 2 else 16)))
