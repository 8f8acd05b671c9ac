"""Inserts `ttng.fence_async_shared` where dots by wgmma read what threads stored to shared memory.

    %m = "ttg.local_alloc"(%x)                       %m = "ttg.local_alloc"(%x)
                                              ->     "ttng.fence_async_shared"()
    %d = "ttng.warp_group_dot"(%m, %n, %c)           %d = "ttng.warp_group_dot"(%m, %n, %c)

wgmma reads through another proxy, to which ordinary stores and cp.async are visible only after such a fence; what
other warps copied is there after the wait for its mbarrier. What a loop only reads is fenced before it. Barriers
come later, between fence and dot: each thread fences its own stores and then waits for the others.

Stores by TMA read through that proxy, too, and are made with their fences. `check_fences` says where a text lacks one.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from deuteron.errors import IRError
from deuteron.ir.builder import Builder
from deuteron.ir.effects import SHARED, WRITE, own_effects
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops, of_kind
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.ttg.async_copy import AsyncCopyGlobalToLocalOp, AsyncWaitOp
from deuteron.ir.ttg.views import viewed
from deuteron.ir.ttng.fence import FenceAsyncSharedOp
from deuteron.ir.ttng.mbarrier import WaitBarrierOp
from deuteron.ir.ttng.tma import AsyncTMACopyGlobalToLocalOp, AsyncTMACopyLocalToGlobalOp, AsyncTMAReduceOp
from deuteron.ir.ttng.warp_group_dot import WarpGroupDotOp

READERS = (WarpGroupDotOp, AsyncTMACopyLocalToGlobalOp, AsyncTMAReduceOp)  # through the proxy
Stored = frozenset[SSAValue]  # allocations with stores that no fence has followed


class FenceWGMMA(ModulePass):
    """Makes stores visible to the dots that read them."""

    name = "fence-wgmma"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if nested_ops(func, WarpGroupDotOp):
                needed = _Fences(func).needed
                for inner in nested_ops(func):
                    if inner in needed:
                        Builder.before(inner).insert(FenceAsyncSharedOp())


def check_fences(module: ModuleOp) -> None:
    """Raise IRError where the text of a module reads through a proxy to which what threads stored is not visible."""
    for func in functions_in(module):
        for op in _FencesOfText(func).needed if nested_ops(func, READERS) else ():
            message = f"{op.name} reads what threads have stored, and no ttng.fence_async_shared is in between"
            raise IRError(message, *from_attribute(op.location))


class _Fences:
    """`needed`: the ops that a fence has to precede, of those `of` a kind that read, and the loops around them."""

    of: tuple[type[Operation], ...] = (WarpGroupDotOp,)

    def __init__(self, func: FuncOp):
        self.needed: set[Operation] = set()
        ops = nested_ops(func)
        self._copied = frozenset(viewed(op.dst) for op in of_kind(ops, AsyncCopyGlobalToLocalOp))
        self._read = self._read_in(func)
        self._stored_by = {op: stored for op in ops if (stored := self._stores(op))}
        self._block(func.body.block, frozenset())

    def _block(self, block: Block, stored: Stored) -> Stored:
        for op in block.ops:
            stored = self._op(op, stored)
        return stored

    def _op(self, op: Operation, stored: Stored) -> Stored:
        if isinstance(op, self.of):
            return self._before(op, stored & _read_by(op), stored)
        if not op.regions:
            return stored | self._stored_by[op] if op in self._stored_by else stored
        blocks = [region.block for region in op.regions if region.blocks]
        if isinstance(op, scf.ForOp | scf.WhileOp):
            inside = frozenset().union(*(self._stored_by.get(inner, ()) for inner in nested_ops(op)))
            stored = self._before(op, (stored & self._read_in(op)) - inside, stored) | inside
        after = [self._block(block, stored) for block in blocks]
        return stored.union(*after) if isinstance(op, scf.IfOp) else after[-1] | stored if after else stored

    def _before(self, op: Operation, unfenced: Stored, stored: Stored) -> Stored:
        if op not in self.needed and not unfenced:
            return stored
        self.needed.add(op)
        return frozenset()

    def _read_in(self, loop: Operation) -> Stored:
        return frozenset().union(*map(_read_by, nested_ops(loop, self.of)))

    def _stores(self, op: Operation) -> Stored:
        """The allocations in which an op, or a copy that it waits for, has stored."""
        if isinstance(op, WaitBarrierOp):
            return self._copied & {viewed(buffer) for buffer in op.deps}
        if isinstance(op, AsyncWaitOp):
            return self._copied
        if isinstance(op, AsyncTMACopyGlobalToLocalOp):
            return frozenset()  # written through the proxy that dots read through
        written = [effect.value for effect in own_effects(op) if effect.resource is SHARED and effect.kind is WRITE]
        return self._read if None in written else frozenset(map(viewed, written))


class _FencesOfText(_Fences):
    """The fences that are there count."""

    of = READERS

    def _op(self, op: Operation, stored: Stored) -> Stored:
        return frozenset() if isinstance(op, FenceAsyncSharedOp) else super()._op(op, stored)


def _read_by(op: Operation) -> Stored:
    return frozenset(map(viewed, op.descriptors if isinstance(op, WarpGroupDotOp) else [op.src]))
