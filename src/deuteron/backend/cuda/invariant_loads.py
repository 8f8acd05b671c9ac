"""Loads of what the kernel does not change: they may be done by the path for read-only data, and later than stores.

    w = tl.load(weight + i)                  of an argument that nothing is stored to: invariant
    tl.store(out + i, w * tl.load(x + i))
    y = tl.load(bias + i)                    behind a store, or in a loop with one: not invariant, `bias` may be `out`

Different arguments are taken not to overlap at shifted addresses within a program. They may be the same array, which a
kernel then updates in place; so no store may come first. Where anything else writes or orders memory, no load is
invariant. Kernels with products keep their loads: ptxas moves invariant ones ahead, and has no registers for that there
(attention spilled 40 bytes on sm_80).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from deuteron.analysis.base_argument import base_argument
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.passes.effects import is_pure

PRODUCTS = ("tt.dot", "ttng.warp_group_dot")


def invariant_loads(func: FuncOp) -> frozenset[Operation]:
    ops = list(func.walk())
    if any(op.name in PRODUCTS for op in ops):
        return frozenset()
    stores = [op for op in ops if isinstance(op, StoreOp)]
    written = {base_argument(store.ptr) for store in stores}
    if None in written or not all(isinstance(op, StoreOp) or _leaves_global_memory(op) for op in ops):
        return frozenset()
    return frozenset(
        load
        for load in ops
        if isinstance(load, LoadOp)
        and not load.is_volatile.value.data
        and base_argument(load.ptr) not in {None, *written}
        and not any(_may_come_first(store, load) for store in stores)
    )


def _leaves_global_memory(op: Operation) -> bool:
    """Whether an op, its regions aside, neither writes global memory nor orders accesses of it."""
    is_local = op.name.startswith(("ttg.", "ttng.")) and "to_global" not in op.name
    return bool(op.regions) or isinstance(op, LoadOp) or is_local or is_pure(op)


def _may_come_first(store: Operation, load: Operation) -> bool:
    """Whether a program may store before it loads."""
    op: Operation | None = load
    while op is not None and op.parent is not None:
        beside = op.parent.find_ancestor_op_in_block(store)
        if beside is not None:
            return _is_in_loop(op if beside is op else op.parent_op()) or beside.is_before_in_block(op)
        op = op.parent_op()
    return True


def _is_in_loop(op: Operation | None) -> bool:
    while op is not None and not isinstance(op, scf.ForOp | scf.WhileOp):
        op = op.parent_op()
    return op is not None
