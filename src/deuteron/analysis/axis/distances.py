"""By how much neighbours along a dimension differ, where they do not just count up or stay the same.

    of 4 neighbours, i = pid * 64 + arange(0, 64)     step   distances
    i                                                 4      0 1 2 3
    i // 2                                            2      0 0 1 1
    i ^ 1                                             4      1 0 3 2
    i % 2                                             0      0 1 0 1
    ptr + i // 2, of fp32, ptr divisible by 16        8      0 0 4 4      (bytes)

Aligned neighbours are `distances` beyond one multiple of `step`, a power of two, which nobody knows; a step of 0 says
that there is none, so that the distances are the numbers. What counts up and what is constant is known from axis info;
what is taken not to overflow, or not to be negative where it is divided, is what is taken not to there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from math import gcd
from types import MappingProxyType
from typing import NamedTuple

from xdsl.dialects import arith
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.axis.axis_info import MAX_DIVISIBILITY, MIN_BITS, AxisInfo, power_of_two_divisor
from deuteron.analysis.axis.ranges import relies_on_natural
from deuteron.analysis.memo import evaluate
from deuteron.ir.casts import ExtSIOp, ExtUIOp, TruncIOp
from deuteron.ir.tt.convert import BitcastOp
from deuteron.ir.tt.function import function_of
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, TransOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, is_integer, is_tile, pointee_of


class Distances(NamedTuple):
    """Of aligned neighbours: `distances` beyond one unknown multiple of `step`, or the numbers where it is 0."""

    step: int
    distances: tuple[int, ...]

    @property
    def number(self) -> int | None:
        """The number that all of them are."""
        return self.distances[0] if not self.step and len(set(self.distances)) == 1 else None

    def alignment(self, distance: int) -> int:
        """The power of two that divides what is so far beyond the multiple."""
        return power_of_two_divisor(gcd(self.step, distance))


Place = tuple[SSAValue, int]
"""A tile of integers or pointers, and the dimension."""
Rule = Callable[[Operation, list[Distances]], Distances | None]


class DistancesAnalysis:
    """Of `count` neighbours along a dimension, a power of two; `info` is the axis info of values, `advanced`: of tiles
    all of whose elements loops advance by the same, what they are before.
    """

    def __init__(
        self,
        info: Callable[[SSAValue], AxisInfo],
        count: int,
        advanced: Mapping[SSAValue, SSAValue] = MappingProxyType({}),
    ):
        self._info, self._count, self._advanced = info, count, advanced
        self._known: dict[Place, Distances | None] = {}

    def of(self, value: SSAValue, axis: int) -> Distances | None:
        """None where nothing is known."""
        return evaluate((value, axis), self._known, self._asked_of, self._find)

    def _asked_of(self, place: Place) -> Sequence[Place]:
        value, axis = place
        if value in self._advanced:
            return [(self._advanced[value], axis)]
        return _operands(*place) if self._info(value).constant is None else ()

    def _find(self, place: Place) -> Distances | None:
        """The multiples of more: of `i + 1` is known that it counts up, and that it is 1 beyond a multiple of 8."""
        found = [one for one in (self._simple(*place), self._computed(*place)) if one is not None]
        return max(found, key=lambda one: one.step or MAX_DIVISIBILITY, default=None)

    def _computed(self, value: SSAValue, axis: int) -> Distances | None:
        operands = [self._known[one] for one in self._asked_of((value, axis))]
        if not operands or None in operands:
            return None
        if value in self._advanced:
            return _made(1, operands[0].distances)
        op = value.owner
        found = _RULES[type(op)](op, operands)
        if found is None or not _has_room(value, found):
            return None
        return found if not isinstance(op, _SIGNED) or relies_on_natural(op.lhs, function_of(op)) else None

    def _simple(self, value: SSAValue, axis: int) -> Distances | None:
        """Of what is the same for all neighbours, or counts up."""
        known, count = self._info(value), self._count
        if known.constant is not None:
            return Distances(0, (known.constant,) * count)
        if known.constancy[axis] % count == 0:
            return _made(known.divisibility_at(axis, 1), [0] * count)
        if known.contiguity[axis] % count == 0:
            return _made(known.divisibility_at(axis, count), [index * known.step for index in range(count)])
        return None


def _operands(value: SSAValue, axis: int) -> Sequence[Place]:
    if isinstance(value, BlockArgument) or type(value.owner) not in _RULES or not is_tile(value.type):
        return ()
    op, element = value.owner, element_type_of(value.type)
    if is_integer(element) and bit_width_of(element) < MIN_BITS:
        return ()
    if isinstance(op, ExpandDimsOp) and axis == op.axis.value.data:
        return ()
    if isinstance(op, ExpandDimsOp | TransOp):
        return [(op.src, op.source_axis(axis))]
    return [(operand, axis) for operand in op.operands]


def _has_room(value: SSAValue, found: Distances) -> bool:
    """Whether numbers are what integers of their bits are, signed or not: what overflows is another number."""
    element = element_type_of(value.type)
    half = 1 << bit_width_of(element) - 1
    return not is_integer(element) or (-half <= min(found.distances) and max(found.distances) < half)


def _made(step: int, distances: Sequence[int]) -> Distances:
    return Distances(step and power_of_two_divisor(step), tuple(distances))


def _within_step(one: Distances) -> Distances | None:
    """The same with distances from 0 to below the step, or numbers that are not negative."""
    least = min(one.distances)
    whole = least // one.step * one.step if one.step else 0
    moved = [distance - whole for distance in one.distances]
    is_within = min(moved) >= 0 and (not one.step or max(moved) < one.step)
    return _made(one.step, moved) if is_within else None


def _sum(sign: int) -> Rule:
    def rule(op: Operation, operands: list[Distances]) -> Distances:
        lhs, rhs = operands
        both = zip(lhs.distances, rhs.distances, strict=True)
        return _made(gcd(lhs.step, rhs.step), [x + sign * y for x, y in both])

    return rule


def _scaled(one: Distances, factor: int) -> Distances:
    return _made(one.step * factor, [distance * factor for distance in one.distances])


def _addptr(op: AddPtrOp, operands: list[Distances]) -> Distances:
    pointer, offset = operands
    return _sum(1)(op, [pointer, _scaled(offset, byte_width_of(pointee_of(op.ptr.type)))])


def _product(op: Operation, operands: list[Distances]) -> Distances | None:
    for one, other in (operands, operands[::-1]):
        if other.number is not None:
            return _scaled(one, other.number)
    return None


def _quotient(op: Operation, operands: list[Distances]) -> Distances | None:
    """Of multiples of the divisor and of distances; of neighbours none of which is the next multiple it is the same."""
    x, number = _within_step(operands[0]), operands[1].number
    if x is None or number is None or number <= 0:
        return None
    if x.step % number == 0:
        return _made(x.step // number, [distance // number for distance in x.distances])
    return _made(1, [0] * len(x.distances)) if number % x.step == 0 else None


def _remainder(op: Operation, operands: list[Distances]) -> Distances | None:
    x, number = _within_step(operands[0]), operands[1].number
    if x is None or number is None or number <= 0:
        return None
    if x.step % number == 0:
        return _made(0, [distance % number for distance in x.distances])
    return x if number % x.step == 0 else None


def _shifted(rule: Rule) -> Rule:
    def shift(op: Operation, operands: list[Distances]) -> Distances | None:
        x, amount = operands
        count = amount.number
        if count is None or not 0 <= count < MIN_BITS - 1:
            return None
        return rule(op, [x, Distances(0, (1 << count,) * len(x.distances))])

    return shift


def _bits(combine: Callable[[int, int], int]) -> Rule:
    """With a number: of what is below the step, and of the multiple, which becomes another one."""

    def rule(op: Operation, operands: list[Distances]) -> Distances | None:
        one, other = operands if operands[1].number is not None else operands[::-1]
        within = _within_step(one) if other.number is not None else None
        if within is None:
            return None
        low = within.step - 1 if within.step else -1
        step = 0 if combine is operator.and_ and 0 <= other.number <= low else within.step
        return _made(step, [combine(distance, other.number & low) for distance in within.distances])

    return rule


def _resized(op: Operation, operands: list[Distances]) -> Distances | None:
    """What is below the step does not overflow."""
    return _within_step(operands[0])


def _first(op: Operation, operands: list[Distances]) -> Distances:
    return operands[0]


_SIGNED = arith.DivSIOp | arith.RemSIOp
_RULES: dict[type[Operation], Rule] = {
    AddPtrOp: _addptr,
    arith.AddiOp: _sum(1),
    arith.SubiOp: _sum(-1),
    arith.MuliOp: _product,
    arith.DivSIOp: _quotient,
    arith.DivUIOp: _quotient,
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _remainder,
    arith.ShLIOp: _shifted(_product),
    arith.ShRSIOp: _shifted(_quotient),
    arith.ShRUIOp: _shifted(_quotient),
    arith.AndIOp: _bits(operator.and_),
    arith.OrIOp: _bits(operator.or_),
    arith.XOrIOp: _bits(operator.xor),
    **dict.fromkeys((ExtUIOp, TruncIOp), _resized),
    **dict.fromkeys((ExtSIOp, BitcastOp, BroadcastOp, ExpandDimsOp, TransOp, ConvertLayoutOp), _first),
}
