"""What ops do to memory.

    tt.load(%p)            reads
    tt.store(%q, %y)       writes
    scf.for ...            what its body does

A barrier counts as a write: no load moves across it.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.core import BlockArgument

from deuteron.ir.types import is_pointer

_WRITES = {"tt.store", "tt.atomic_rmw", "tt.atomic_cas", "ttg.barrier", "tt.print", "tt.assert"}


def writes(op: Operation) -> bool:
    """Whether the op, or one inside it, writes memory or orders memory accesses."""
    return any(inner.name in _WRITES for inner in op.walk()) if op.regions else op.name in _WRITES


def reads(op: Operation) -> bool:
    """Whether the op, or one inside it, reads memory."""
    return any(inner.name == "tt.load" or writes(inner) for inner in ([op] if not op.regions else op.walk()))


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


def base_of(pointer: SSAValue) -> SSAValue:
    """What a pointer was computed from by additions: mostly an argument of the kernel."""
    while True:
        owner = pointer.owner
        if isinstance(pointer, BlockArgument) and isinstance(owner.parent_op(), Operation):
            outer = _initial(pointer)
            if outer is None:
                return pointer
            pointer = outer
        elif isinstance(owner, Operation) and owner.operands and is_pointer(owner.operands[0].type):
            if owner.name not in ("tt.addptr", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.bitcast"):
                return pointer
            pointer = owner.operands[0]
        else:
            return pointer


def _initial(argument: BlockArgument) -> SSAValue | None:
    """The value that a loop-carried argument starts with."""
    op = argument.owner.parent_op()
    return op.iter_args[argument.index - 1] if op.name == "scf.for" and argument.index > 0 else None
