"""What ops do to the user's memory, which decides their order. What each op does, `ir/effects.py` says.

tt.load(%p)            reads
tt.store(%q, %y)       writes
ttg.barrier, tt.print  count as writes: no load moves across them
scf.for ...            what its body does
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.apart import take_apart
from deuteron.analysis.points_to import Targets, points_to
from deuteron.analysis.same_offsets import same_offsets
from deuteron.analysis.written_arguments import touched_arguments
from deuteron.ir.effects import GLOBAL, READ, WRITE, effects_of, own_effects
from deuteron.ir.tt.memory import StoreOp


def writes(op: Operation) -> bool:
    """Whether the op, or one inside it, writes memory or orders memory accesses."""
    return any(effect.kind is not READ for effect in effects_of(op) if effect.resource is GLOBAL)


def reads(op: Operation) -> bool:
    """Whether the op, or one inside it, accesses memory."""
    return any(effect.resource is GLOBAL for effect in effects_of(op))


class Places:
    """Where pointers may point, remembered. What is taken to be apart, the kernel relies on (analysis/apart.py)."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Targets] = {}

    def may_overlap(self, first: SSAValue, second: SSAValue) -> bool:
        """Whether an element of one may be another element of the other."""
        return not take_apart(self._targets(first), self._targets(second), same_offsets(first, second))

    def may_write(self, op: Operation, pointer: SSAValue) -> bool:
        """Whether the op itself may write where the pointer points, but for its own element of that."""
        in_step = isinstance(op, StoreOp) and same_offsets(op.ptr, pointer)
        return not take_apart(touched_arguments(own_effects(op), WRITE), self._targets(pointer), in_step)

    def _targets(self, pointer: SSAValue) -> Targets:
        if pointer not in self._known:
            self._known[pointer] = points_to(pointer)
        return self._known[pointer]


class WritesBetween:
    """Answers whether memory may be written between two ops of a block."""

    def __init__(self) -> None:
        self._counts: dict[Operation, int] = {}
        self._seen: set[Block] = set()

    def __call__(self, first: Operation, second: Operation) -> bool:
        block = first.parent_block()
        if block not in self._seen:
            self._count(block)
        return self._counts[second] > self._counts[first]

    def _count(self, block: Block) -> None:
        """For each op, the number of writing ops before it."""
        self._seen.add(block)
        count = 0
        for op in block.ops:
            self._counts[op] = count
            count += writes(op)
