"""Which arguments a kernel changes by what it finds in them, so that it gives something else when it runs again.

tt.store p, 2 * (tt.load p)          p: it is loaded, and then stored to
tt.atomic_rmw fadd, sums, x          sums: it is added to
tt.store s, x; y = tt.load s         not s: what is found there is the kernel's own
tt.atomic_cas lock, 0, 1             not lock: programs take it and give it back, as counters of whole numbers

It is in the order of the text; of a pointer of which it is not known where it points nothing is said.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.aliasing.written_arguments import read_by, written_by
from deuteron.ir.effects import GLOBAL, effects_inside
from deuteron.ir.tt.atomic import AtomicKind, AtomicRMWOp
from deuteron.ir.tt.descriptor import DescriptorReduceOp
from deuteron.ir.tt.function import FuncOp


def updated_arguments(kernel: FuncOp) -> set[SSAValue]:
    """Those of the kernel's arguments."""
    found, stored, updated = set(), set(), set()
    for op in dict.fromkeys(op for op, effect in effects_inside(kernel) if effect.resource is GLOBAL):
        read, written = read_by(op).arguments, written_by(op).arguments
        if _adds(op):
            updated |= written
        elif not read:
            updated |= written & found
            stored |= written
        elif not written:
            found |= read - stored
    return updated


def _adds(op: Operation) -> bool:
    return isinstance(op, DescriptorReduceOp) or (isinstance(op, AtomicRMWOp) and op.kind.value.data == AtomicKind.FADD)
