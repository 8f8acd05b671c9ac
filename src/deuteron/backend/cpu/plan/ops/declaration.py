"""What is declared of an op class, and the declarations that many classes share.

    AddiOp: Lazy(0.25, step=...)        computed element by element, wherever a root uses it
    AssertOp: ...                       see memory.py: done element by element, where it stands
    CallOp: Uncompiled()                an error: passes have replaced it

A declaration is the same for all ops of its class; what depends on the op is a function of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, Region, SSAValue

from deuteron.backend.cpu.plan.indices import Index
from deuteron.backend.cpu.plan.items import Scalar
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.tiles.use import Use
from deuteron.backend.cpu.plan.visitors import ReadVisitor, ScheduleVisitor
from deuteron.backend.rule_errors import unsupported
from deuteron.ir.types import is_integer, is_tile

Operands = list[tuple[SSAValue, Index]]
Step = int | str
UNKNOWN = "unknown"  # the same everywhere, but not known here
IRREGULAR = "irregular"

# Integers of so many bits or more, widened to be offsets, are taken not to overflow, as whoever computes offsets takes
# them to; narrower ones may wrap around on the way.
OFFSET_BITS = 32

# Weights are in additions of floats, as those of the other files of this folder: estimated, not measured.
INDEX_WEIGHT = 0.25  # arithmetic on integers is mostly on indices, and done once for a whole vector
FLOAT_WEIGHT = 1.0


class Declaration:
    """An op that is an item of its own, where it stands."""

    forwards = False
    """Whether the result is the operand at another index, and nothing is computed."""

    is_index_arithmetic = False
    """Whether the result is mostly an index or an address, which vectors compute once for all lanes."""

    def is_lazy(self, op: Operation) -> bool:
        """Whether the op's results are computed at an index, wherever a root uses them."""
        return False

    def is_view(self, op: Operation) -> bool:
        """Whether the op's results show the memory of its operand."""
        return False

    def reads_memory(self, op: Operation) -> bool:
        """Whether the op, which is lazy, reads memory: it would find something else at another time."""
        return False

    def repeats(self, op: Operation) -> bool:
        """Whether the op takes an element of its operand several times."""
        return False

    def regions(self, op: Operation) -> Sequence[Region]:
        """The regions whose ops are planned as this one is."""
        return ()

    def operands_at(self, op: Operation, index: Index) -> Operands:
        """What the op's result at an index is computed from. The entries of an index are opaque here: numbers of
        dimensions in a plan, loop variables in the code; in both also `fragment.one_element`. None stands for an
        extent of 1; a scalar's index is ().
        """
        return [(operand, index if is_tile(operand.type) else ()) for operand in op.operands]

    def weight(self, op: Operation) -> float:
        """What an element costs, about, in additions: see costs.py."""
        return 0.0

    def step(self, op: Operation, steps: Sequence[Step]) -> Step:
        """By how much the result grows along an axis along which the operands grow by these steps; not all are 0."""
        return IRREGULAR

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        """Enter who reads the operands; those who read the results are known."""
        for operand in op.operands:
            storage.read(operand, Use(op, op))

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        """Add what becomes of the op to the items."""
        raise NotImplementedError


class Lazy(Declaration):
    """An op that is computed wherever a root uses an element of its result."""

    def __init__(
        self, weight: float | None = None, step: Callable[[Operation, Sequence[Step]], Step] | None = None
    ) -> None:
        self._weight, self._step = weight, step
        self.is_index_arithmetic = step is not None

    def is_lazy(self, op: Operation) -> bool:
        return True

    def weight(self, op: Operation) -> float:
        if self._weight is not None:
            return self._weight
        return INDEX_WEIGHT if is_integer(op.results[0].type) else FLOAT_WEIGHT

    def step(self, op: Operation, steps: Sequence[Step]) -> Step:
        return IRREGULAR if self._step is None or IRREGULAR in steps else self._step(op, steps)

    def read(self, op: Operation, storage: ReadVisitor) -> None:
        for result in op.results:
            use = storage.use_through(result, op)
            for operand in op.operands:
                storage.read(operand, use)

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        """Where the tile is to be kept, that is a root; else it is computed where it is read."""
        for result in op.results:
            if result in scheduler.storage.kept:
                scheduler.root(Keep(op, (result,), scheduler.new_place(result), result))


class ScalarOp(Declaration):
    """An op on scalars that has an effect, or stands for the end of one."""

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        scheduler.add(Scalar(op))


class Uncompiled(Declaration):
    """An op that passes have replaced, or that never comes out of the frontend."""

    def schedule(self, op: Operation, scheduler: ScheduleVisitor) -> None:
        raise unsupported(op, "CPU")


def tiles_of(op: Operation) -> tuple[SSAValue, ...]:
    return tuple(operand for operand in op.operands if is_tile(operand.type))
