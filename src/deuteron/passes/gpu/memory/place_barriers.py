"""Inserts `ttg.barrier` where threads have to wait for each other, and nowhere else.

    "ttg.local_store"(%x, %m)                   "ttg.local_store"(%x, %m)
                                         ->     "ttg.barrier"()
    %y = "ttg.local_load"(%m)                   %y = "ttg.local_load"(%m)

Needs the places of shared memory (`allocate-shared`). In global memory threads wait likewise before they touch what
others of the program touched (`analysis/aliasing`). An atomic on a scalar is done by one thread for the
program, as are atomic loads and stores, of tiles too: with release, all threads wait before it, so that what they
stored is released; with acquire, after it, so that none reads what it loaded before.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from deuteron.analysis.aliasing.global_hazards import GlobalHazards
from deuteron.analysis.shared_memory.shared_hazards import HazardAnalysis, waits
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.atomic import AtomicLoadOp, AtomicOp, AtomicStoreOp, MemorySemantic
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.types import is_tile
from deuteron.passes.gpu.memory.allocate_shared import OFFSET, offset_of


class PlaceBarriers(ModulePass):
    """Places the barriers of shared memory, of global memory and of atomics."""

    name = "place-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            _order_atomics(func)
            offsets = {inner: offset_of(inner) for inner in nested_ops(func) if OFFSET in inner.attributes}
            needed = HazardAnalysis(func, offsets).needs_barrier
            needed |= GlobalHazards(func, needed, set(filter(waits, offsets))).needs_barrier
            for inner in nested_ops(func):
                if inner in needed:
                    Builder.before(inner).insert(BarrierOp())


def _order_atomics(func: FuncOp) -> None:
    for op in nested_ops(func, AtomicOp):
        if _is_flag(op) or not is_tile(op.ptr.type):
            semantic = MemorySemantic(op.sem.value.data)
            if semantic.releases and not _is_barrier(op.prev_op):
                Builder.before(op).insert(BarrierOp())
            if semantic.acquires and not _waits_anyway(op) and not _is_barrier(op.next_op):
                Builder.after(op).insert(BarrierOp())


def _is_barrier(op: Operation | None) -> bool:
    """Whether all threads of the program wait there for each other, and for what they did to memory of any kind."""
    return isinstance(op, BarrierOp)


def _is_flag(op: Operation) -> bool:
    """Whether it only loads or stores: of a tile of flags, too, each is for all that the program accesses."""
    return isinstance(op, AtomicLoadOp | AtomicStoreOp)


def _waits_anyway(op: Operation) -> bool:
    """Whether the result goes through shared memory to all threads: they wait for it."""
    return OFFSET in op.attributes
