"""Lets TMA see what a program has acquired: a proxy fence follows an atomic that acquires, if copies by TMA may.

    "tt.atomic_rmw"(%flag, %zero) <acquire>                  "tt.atomic_rmw"(%flag, %zero) <acquire>
                                                    ->       "ttng.fence_async_global"()
    "ttng.async_tma_copy_global_to_local"(...)               "ttng.async_tma_copy_global_to_local"(...)

Another kernel may have stored through pointers what it released, and TMA accesses memory by another path (proxy), which
an acquire says nothing about. Where all threads wait for the atomic, they do between it and the fence.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from deuteron.analysis.aliasing.program_order import ProgramOrder
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.atomic import AtomicOp, MemorySemantic
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttng.fence import FenceAsyncGlobalOp
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp, AsyncTMACopyLocalToGlobalOp, AsyncTMAReduceOp

COPIES = AsyncTMACopyGlobalToLocalOp | AsyncTMACopyLocalToGlobalOp | AsyncTMAReduceOp


class FenceAcquires(ModulePass):
    """Places proxy fences between acquires and copies by TMA."""

    name = "fence-acquires"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if copies := nested_ops(func, COPIES):
                _fence(func, ProgramOrder(func, copies))


def _fence(func: FuncOp, order: ProgramOrder) -> None:
    for atomic in nested_ops(func, AtomicOp):
        if MemorySemantic(atomic.sem.value.data).acquires and order.after(atomic):
            Builder.after(atomic).insert(FenceAsyncGlobalOp())
