"""Divisions of indices by numbers that only the running program knows, or that no vector fits in: runs of neighbours
that have one quotient.

    i = pid * 1024 + tl.arange(0, 1024)
    tl.load(x + i) + tl.load(bias + i // n % c)         n = 784: elements 0 to 783 have one quotient, others another

The nest runs segment by segment: in each the quotients are numbers, the remainders count up, and what is loaded at them
is one element or neighbours, not gathered. The last vector of a segment has lanes that are off. From segment to segment
quotients count up by one, and so do remainders of them (`i // n % c`), in runs of segments of one `i // n // c`. That
is for divisions of what grows along the dimension, by what does not change along it; a remainder grows as what is
divided does, so that it can be divided in turn. It holds of numbers of either sign. Where segments would be too short,
which is known before the nest for all of them, it runs on vectors that divide.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Exchanged, Index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR, Step
from deuteron.backend.cpu.plan.ops.elementwise import WIDENING
from deuteron.backend.cpu.plan.roots import Keep, StoreRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.accesses import Access, accesses_of
from deuteron.backend.cpu.plan.vectors.limits import find_limits
from deuteron.backend.cpu.plan.vectors.quotients import SIGNED
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS, REMAINDERS
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.arith import constant_value
from deuteron.ir.types import bit_width_of

# Shorter segments leave most lanes of a vector unused; gathers and divisions of whole vectors are faster then.
SHORTEST = 8

# Steps of which several fit into the integers that indices are.
MOST_GROWTH, _INDEX_BITS = 1 << 24, 32


@dataclass(frozen=True)
class Growth:
    """Of an op at an index of a nest: its first operand grows by `step` along the dimension of the segments.

    `depth`: of how many divisions, each made of what another one gives, its operands are; of a chained one its divisor.
    """

    op: Operation
    index: Index
    step: int
    depth: int = 0


@dataclass(frozen=True)
class Division(Growth):
    """A division at whose boundaries segments end."""

    @property
    def divisor(self) -> SSAValue:
        return self.op.operands[1]

    @property
    def is_long(self) -> bool:
        """Whether its segments are known to be long enough."""
        return self.has_at_least(SHORTEST)

    def has_at_least(self, num_elements: int) -> bool:
        """Whether its segments are known to have so many."""
        number = constant_value(self.divisor)
        return number is not None and abs(number) >= num_elements * self.step


@dataclass(frozen=True)
class Segments:
    """The divisions at whose boundaries segments end, each before those that divide what it gives; what may divide
    their quotients (`chained`); and integers that are widened, which have to grow without wrapping.
    """

    divisions: tuple[Division, ...]
    widened: tuple[Growth, ...]
    chained: tuple[Growth, ...] = ()

    @property
    def counted(self) -> tuple[Division, ...]:
        """Those whose quotient counts up by one from segment to segment: of one number by one number, which ends
        segments most often. That is taken to be by a constant, or by the fewest arguments, of those that are made of
        most others: no other division, which has to hold in a run of segments, is made of what they give.
        """
        last = max(self.divisions, key=self._frequency)
        return tuple(one for one in self.divisions if _divides_alike(one, last))

    @property
    def runs(self) -> tuple[Division, ...]:
        """The other ones: what they give is known of a run of segments, whatever order that makes."""
        return tuple(one for one in self.divisions if one not in self.counted)

    @property
    def of_counted(self) -> tuple[Growth, ...]:
        """The divisions of quotients that count up, by what does not change as they do."""
        counted = self.counted
        quotients = {(one.op.results[0], one.index) for one in counted if not isinstance(one.op, REMAINDERS)}
        return tuple(
            one
            for one in self.chained
            if (one.op.operands[0], one.index) in quotients and one.depth <= counted[0].depth
        )

    def _frequency(self, division: Division) -> tuple[int, int, int]:
        """The greater the more often, of what is likely."""
        number = constant_value(division.divisor)
        return division.depth, -_num_factors(division.divisor), -abs(number or 0)

    @property
    def lengths(self) -> list[int]:
        """How many elements segments have, as far as that is known: at most so many, of each division."""
        numbers = [(constant_value(division.divisor), division.step) for division in self.divisions]
        return [max(1, abs(number) // step) for number, step in numbers if number]

    @property
    def unknown(self) -> list[Division]:
        """Those of which only the running program knows whether segments are long enough."""
        return [division for division in self.divisions if not division.is_long]


def find_segments(plan: Plan, nest: Nest, axis: int) -> tuple[Segments, list[Access]] | None:
    """Those along an axis, and what the nest accesses then; None where there are none, or not in such a nest."""
    if not all(isinstance(root, StoreRoot | Keep) and root.body is None for root in nest.roots):
        return None
    reads = [plan.reader.reads(root) for root in nest.roots]
    if not any(axis in index for one in reads for _, index in one.quotients):
        return None
    if any(one.has_exchanges for one in reads):  # they are of whole vectors, which segments do not begin with
        return None
    limits = find_limits(plan, nest, axis)
    compared = {(limit.op.results[0], limit.index) for limit in limits.limits} if limits else set()
    steps = _StepsInSegments(plan, axis, compared)
    accesses = accesses_of(plan, nest, steps)
    if not steps.divisions or not all(_can_be_masked(access, axis) for access in accesses):
        return None
    return Segments(tuple(steps.divisions), tuple(steps.widened), tuple(steps.chained)), accesses


def _divides_alike(one: Division, other: Division) -> bool:
    """Whether two have the same quotient."""
    if isinstance(one.op, SIGNED) != isinstance(other.op, SIGNED) or one.index != other.index:
        return False
    dividend, divisor = zip(one.op.operands, other.op.operands, strict=True)
    numbers = [constant_value(value) for value in divisor]
    is_one_number = divisor[0] == divisor[1] or (numbers[0] == numbers[1] and None not in numbers)
    return dividend[0] == dividend[1] and is_one_number


def _num_factors(value: SSAValue) -> int:
    """Of how many numbers that only the running program knows a divisor is the product."""
    value = ops.forwarded(value)
    if constant_value(value) is not None:
        return 0
    is_product = isinstance(value.owner, (arith.MuliOp, *WIDENING))
    return sum(map(_num_factors, value.owner.operands)) if is_product else 1


def _can_be_masked(access: Access, axis: int) -> bool:
    """Whether a vector of it may have lanes that are off, where it is of a kept tile."""
    if access.place is None:
        return True
    return access.place.slot.layout is None and access.steps[axis] in (0, 1)


class _StepsInSegments(Steps):
    """Steps where quotients and comparisons with limits (`compared`) are the same along an axis; what was found on the
    way that they hold by.
    """

    def __init__(self, plan: Plan, axis: int, compared: set[tuple[SSAValue, Index]]):
        super().__init__(plan)
        self._known = {}
        self._depths: dict[tuple[SSAValue, Index, int], int] = {}
        self._axis = axis
        self._compared = compared
        self.divisions: list[Division] = []
        self.widened: list[Growth] = []
        self.chained: list[Growth] = []

    def _compute(self, taken: tuple[SSAValue, Index, int]) -> Step:
        step, (value, index, axis) = super()._compute(taken), taken
        depths = [self._depths[part] for part in self._inputs(taken)]
        self._depths[taken] = max(depths, default=0)
        if axis != self._axis or value in self._plan.places or not isinstance(value.owner, Operation):
            return step
        if (value, index) in self._compared:
            return 0
        if step == 0:
            if isinstance(value.owner, QUOTIENTS) and axis in index:
                self.chained.append(Growth(value.owner, index, 0, depths[1]))
            return step
        if not isinstance(value.owner, WIDENING + QUOTIENTS):
            return step
        if any(isinstance(entry, Exchanged) for entry in index):
            return IRREGULAR
        if isinstance(value.owner, WIDENING):
            return self._of_widened(value.owner, index, step)
        return self._of_quotient(taken)

    def _of_widened(self, op: Operation, index: Index, step: Step) -> Step:
        if not isinstance(step, int):
            return step
        if not 0 < step < MOST_GROWTH:
            return IRREGULAR
        self.widened.append(Growth(op, index, step))
        return step

    def _of_quotient(self, taken: tuple[SSAValue, Index, int]) -> Step:
        op, index = taken[0].owner, taken[1]
        dividend, divisor = (self._known[part] for part in self._inputs(taken))
        if divisor != 0 or not isinstance(dividend, int) or not 0 < dividend < MOST_GROWTH:
            return IRREGULAR
        division = Division(op, index, dividend, self._depths[taken])
        is_short = constant_value(division.divisor) is not None and not division.is_long
        if is_short or bit_width_of(op.results[0].type) < _INDEX_BITS:
            return IRREGULAR
        self.divisions.append(division)
        self._depths[taken] += 1
        return dividend if isinstance(op, REMAINDERS) else 0
