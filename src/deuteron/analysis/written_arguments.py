"""Which arguments of the kernel are written, and so which loads may come before other accesses.

    a, out: arguments         written_arguments(loop)                    {out}
    for ...:                  is_apart(load, {out})                      True: it reads a
      load a[...]             is_apart(load, {None})                     False: something unknown is written
      store out[...]

A kernel's arguments are taken not to overlap, as Triton does.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.base_argument import base_argument
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicRMWOp
from deuteron.ir.tt.descriptor import (
    BlockAccess,
    DescriptorLoadOp,
    DescriptorReduceOp,
    DescriptorStoreOp,
    descriptor_of,
)
from deuteron.ir.tt.memory import LoadOp, StoreOp

_WRITES = (StoreOp, AtomicRMWOp, AtomicCASOp, DescriptorStoreOp, DescriptorReduceOp)


def written_arguments(op: Operation) -> set[SSAValue | None]:
    """The arguments that ops inside write; None is one of them where that is not known."""
    return {accessed_argument(inner) for inner in op.walk() if isinstance(inner, _WRITES)}


def is_apart(load: LoadOp | DescriptorLoadOp, written: set[SSAValue | None]) -> bool:
    """Whether what is loaded is in none of these arguments."""
    return not written or (None not in written and accessed_argument(load) not in {None, *written})


def accessed_argument(op: Operation) -> SSAValue | None:
    """The argument that an op accesses; None where it is not known."""
    return base_argument(descriptor_of(op).base if isinstance(op, BlockAccess) else op.ptr)
