"""Orders an atomic on a tile by one fence, in the place of one in every instruction.

    "tt.atomic_rmw"(%p, %v) <acq_rel>         ->      "ttg.fence"() <gpu>
                                                      "tt.atomic_rmw"(%p, %v) <relaxed>
    %x = "tt.load"(%q)                                "ttg.fence"() <gpu>
                                                      %x = "tt.load"(%q)

The fence before it releases, the one after it acquires. Where the program accesses no global memory afterwards, or a
fence comes first, there is nothing that the second would keep in order, and it is left out: the updates then run on
while the program ends. Flags (atomic loads and stores) and atomics on scalars, which one thread does, keep their order.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from deuteron.ir.builder import Builder
from deuteron.ir.effects import GLOBAL, effects_of
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.atomic import AtomicCASOp, AtomicRMWOp, MemoryScope, MemorySemantic
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.fence import FenceOp
from deuteron.ir.types import i32, is_tile
from deuteron.passes.optimisation import Optimisation

# What a fence of one scope orders is in order in those before it too.
_WIDTH = {MemoryScope.CTA: 0, MemoryScope.GPU: 1, MemoryScope.SYSTEM: 2}


class FenceAtomics(Optimisation):
    """Orders atomics on tiles by fences."""

    name = "fence-atomics"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            for atomic in reversed(nested_ops(func, AtomicRMWOp | AtomicCASOp)):
                if is_tile(atomic.ptr.type):
                    _fence(atomic)


def _fence(atomic: AtomicRMWOp | AtomicCASOp) -> None:
    """Later atomics come first: their fences may save one of this."""
    semantic, scope = (MemorySemantic(atomic.sem.value.data), MemoryScope(atomic.scope.value.data))
    if semantic.acquires and _is_followed(atomic, scope):
        Builder.after(atomic).insert(FenceOp(scope))
    if semantic.releases:
        Builder.before(atomic).insert(FenceOp(scope))
    atomic.properties["sem"] = IntegerAttr(MemorySemantic.RELAXED, i32)


def _is_followed(op: Operation, scope: MemoryScope) -> bool:
    """Whether the program may access global memory after an op, and before a fence of the scope."""
    after = op.next_op
    while after is not None:
        if isinstance(after, FenceOp) and _WIDTH[after.scope.value.data] >= _WIDTH[scope]:
            return False
        if any(effect.resource is GLOBAL for effect in effects_of(after)):
            return True
        after = after.next_op
    parent = op.parent_op()
    if isinstance(parent, FuncOp):
        return False
    return not isinstance(parent, scf.IfOp) or _is_followed(parent, scope)
