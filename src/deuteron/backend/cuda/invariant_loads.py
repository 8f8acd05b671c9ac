"""Loads of what the kernel does not change: they may be done by the path for read-only data, and later than stores.

    w = tl.load(weight + i)                  of an argument that nothing is stored to: invariant
    tl.store(out + i, w * tl.load(x + i))
    y = tl.load(bias + i)                    after a store, or in a loop with one: not invariant, `bias` may be `out`

Different arguments are taken not to overlap at shifted addresses within a program. They may be the same array, which a
kernel then updates in place; so nothing that writes may come first. Where accesses are kept in order, or where it is
not known what is written, no load is invariant. Kernels with dots keep their loads: ptxas moves invariant ones
ahead, and has no registers for that there (attention spilled 40 bytes on sm_80).
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from deuteron.analysis.written_arguments import is_apart, read_by, written_arguments
from deuteron.ir.effects import GLOBAL, WRITE, effects_inside, first_in_order
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp

DOTS = ("tt.dot", "ttg.sliced_dot", "ttng.warp_group_dot")


def invariant_loads(func: FuncOp) -> frozenset[Operation]:
    ops, written = nested_ops(func), written_arguments(func)
    if any(op.name in DOTS for op in ops) or first_in_order(func, GLOBAL) is not None:
        return frozenset()
    writers = {op for op, effect in effects_inside(func) if effect.resource is GLOBAL and effect.kind is WRITE}
    return frozenset(
        load
        for load in ops
        if isinstance(load, LoadOp)
        and read_by(load).is_known
        and is_apart(load, written)
        and not any(_may_come_first(writer, load) for writer in writers)
    )


def _may_come_first(writer: Operation, load: Operation) -> bool:
    """Whether a program may write before it loads."""
    op: Operation | None = load
    while op is not None and op.parent is not None:
        beside = op.parent.find_ancestor_op_in_block(writer)
        if beside is not None:
            return _is_in_loop(op if beside is op else op.parent_op()) or beside.is_before_in_block(op)
        op = op.parent_op()
    return True


def _is_in_loop(op: Operation | None) -> bool:
    while op is not None and not isinstance(op, scf.ForOp | scf.WhileOp):
        op = op.parent_op()
    return op is not None
