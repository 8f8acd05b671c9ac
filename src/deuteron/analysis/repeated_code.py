"""Where the ops of a block repeat themselves, as the iterations of an unrolled loop do.

    keys     a b a b a b a b c              one number for equal ops, whatever they are given
    find_repeats(keys, 3)                   Repeat(begin=0, period=2, count=4)

    %1 = f(%0, %n)   constant 3             Iterations.runs(): iterations 0 to 2; in each the first operand of f is what
    %2 = f(%1, %n)   constant 5             the iteration before it gave (first %0), the second the same in all; the
    %3 = f(%2, %n)   constant 7             constant is 3 and 2 more each time

Ops with regions are equal if what is in them is. Where something is in the source is not looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import copysign

from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Block, Operation, SSAValue

from deuteron.cached_property import cached_property
from deuteron.ir.arith import constant_value
from deuteron.ir.nested import nested_ops
from deuteron.ir.types import bit_width_of, is_integer


class Keys:
    """A number for each op, equal for ops that differ in operands and in the numbers of constants alone."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, op: Operation) -> int:
        return self._number(tuple(self._one(inner) for inner in nested_ops(op)) if op.regions else self._one(op))

    def _one(self, op: Operation) -> Hashable:
        properties = () if isinstance(op, ConstantOp) else tuple(op.properties.items())
        regions = tuple(tuple(a.type for b in region.blocks for a in b.args) for region in op.regions)
        types = tuple(result.type for result in op.results)
        return op.name, types, len(op.operands), properties, tuple(op.attributes.items()), regions

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


_BITS_OF_WHOLE = 8  # floats of twice as many bits hold all whole numbers of these, bf16 too


@dataclass(frozen=True)
class Repeat:
    """`count` times the same `period` ops, the first at `begin`."""

    begin: int
    period: int
    count: int

    @property
    def end(self) -> int:
        return self.begin + self.period * self.count


def find_repeats(keys: Sequence[int], least: int) -> Iterator[Repeat]:
    """All that repeats itself `least` times at once, short periods first, none twice."""
    seen: set[tuple[int, int]] = set()
    for period, place in sorted(_candidates(keys, least)):
        begin, end = _extent(keys, period, place)
        if (period, begin) not in seen and end - begin >= period * least:
            seen.add((period, begin))
            yield Repeat(begin, period, (end - begin) // period)


def _candidates(keys: Sequence[int], least: int) -> Iterator[tuple[int, int]]:
    """Periods, and where: equal keys that are as far from each other, `least` of them."""
    places: dict[int, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    for found in places.values():
        length = 1
        for index in range(1, len(found)):
            same = index > 1 and found[index] - found[index - 1] == found[index - 1] - found[index - 2]
            length = length + 1 if same else 2
            if length == least:
                yield found[index] - found[index - 1], found[index - least + 1]


def _extent(keys: Sequence[int], period: int, place: int) -> tuple[int, int]:
    """From where to where each key is the one that comes a period later."""
    begin, end = place, place
    while begin > 0 and keys[begin - 1] == keys[begin - 1 + period]:
        begin -= 1
    while end + period < len(keys) and keys[end] == keys[end + period]:
        end += 1
    return begin, end + period


@dataclass(frozen=True)
class Place:
    """Which value of an iteration: of its op number `op` (those in regions count) result, or argument of a region."""

    op: int
    index: int


@dataclass(frozen=True)
class Slot:
    """An operand: of which op of an iteration, and which."""

    op: int
    index: int


@dataclass(frozen=True)
class Run:
    """Iterations `first` to `last` that one loop may be. `carried`: the operands that the iteration before gave, and
    where. `steps`: the constants that change, by their op, and by how much.
    """

    first: int
    last: int
    carried: dict[Slot, Place]
    steps: dict[int, int]


class Iterations:
    """The iterations of a repeat: of each its ops, those in regions among them."""

    def __init__(self, repeat: Repeat, ops: Sequence[Operation]):
        begins = range(repeat.begin, repeat.end, repeat.period)
        self.outer = [list(ops[begin : begin + repeat.period]) for begin in begins]
        self.ops = [[inner for op in outer for inner in nested_ops(op)] for outer in self.outer]
        self.of_op = {op: number for number, inner in enumerate(self.ops) for op in inner}
        self._places = {
            value: (number, Place(index, place))
            for number, inner in enumerate(self.ops)
            for index, op in enumerate(inner)
            for place, value in enumerate(_values(op))
        }

    def place_of(self, value: SSAValue) -> tuple[int, Place] | None:
        """The iteration that gives a value, and where; None: it comes from outside."""
        return self._places.get(value)

    def value(self, number: int, place: Place) -> SSAValue:
        return _values(self.ops[number][place.op])[place.index]

    def runs(self, least: float) -> Iterator[Run]:
        """The longest runs of `least` iterations or more."""
        first = 1
        while first < len(self.ops):
            last = first
            while last + 1 < len(self.ops) and self._follows(first, last + 1):
                last += 1
            begin = first - 1 if self._may_begin(first) else first
            run = self._run(begin, first, last) if last - begin + 1 >= least else None
            if run is not None:
                yield run
            first = last + 1

    @cached_property
    def _sources(self) -> list[list[tuple[Hashable, ...]]]:
        """Of each iteration, op and operand where it comes from: this iteration, the one before, or a value."""
        return [[self._source(number, op) for op in inner] for number, inner in enumerate(self.ops)]

    def _source(self, number: int, op: Operation) -> tuple[Hashable, ...]:
        found = []
        for operand in op.operands:
            known = self._places.get(operand)
            age = number - known[0] if known is not None else None
            found.append((age, known[1]) if age in (0, 1) else operand)
        return tuple(found)

    def _follows(self, first: int, number: int) -> bool:
        """Whether an iteration does what the `first` does, its constants a step further than the one before it."""
        if self._sources[number] != self._sources[first]:
            return False
        steps = self._steps(number)
        return steps is not None and steps == self._steps(first)

    def _steps(self, number: int) -> dict[int, int] | None:
        """How the constants of an iteration differ from those before; None: not by a number."""
        steps: dict[int, int] = {}
        for index, (before, op) in enumerate(zip(self.ops[number - 1], self.ops[number], strict=True)):
            if not isinstance(op, ConstantOp) or op.value == before.value:
                continue
            step = _difference(before, op)
            if step is None:
                return None
            steps[index] = step
        return steps

    def _may_begin(self, first: int) -> bool:
        """Whether the iteration before is one as well, but for what it is given of the one before it."""
        for ours, theirs in zip(self._sources[first - 1], self._sources[first], strict=True):
            for before, source in zip(ours, theirs, strict=True):
                from_last = isinstance(source, tuple) and source[0] == 1
                from_itself = isinstance(before, tuple) and before[0] == 0
                if from_itself if from_last else before != source:
                    return False
        return True

    def _run(self, begin: int, first: int, last: int) -> Run | None:
        steps = self._steps(first)
        if steps is None:
            return None
        carried = {}
        for index, sources in enumerate(self._sources[first]):
            for place, source in enumerate(sources):
                if isinstance(source, tuple) and source[0] == 1:
                    carried[Slot(index, place)] = source[1]
                elif isinstance(source, SSAValue) and self._places.get(source, (-1,))[0] >= begin:
                    return None  # of one iteration in all the others
        typed = all(
            self.ops[begin][s.op].operands[s.index].type == self.value(begin, p).type for s, p in carried.items()
        )
        return Run(begin, last, carried, steps) if typed else None


def _values(op: Operation) -> list[SSAValue]:
    """What an op gives: its results, and the arguments of its regions."""
    return [*op.results, *(argument for region in op.regions for block in region.blocks for argument in block.args)]


def _difference(before: ConstantOp, op: ConstantOp) -> int | None:
    """Of two whole numbers, or tiles of one; where a loop can count."""
    numbers = [_whole_number(one.results[0]) for one in (before, op)]
    return numbers[1] - numbers[0] if None not in numbers and _is_in_control_flow(op) else None


def _whole_number(constant: SSAValue) -> int | None:
    """What a constant is, if a loop that counts in integers has it exactly: no -0, and few bits of a float."""
    value, type = constant_value(constant), constant.type
    if value is None or bit_width_of(type) == 1:
        return None
    if is_integer(type):
        return value
    is_exact = bit_width_of(type) >= 2 * _BITS_OF_WHOLE and abs(value) <= 1 << _BITS_OF_WHOLE and value == int(value)
    return int(value) if is_exact and (value or copysign(1, value) > 0) else None


def _is_in_control_flow(op: Operation) -> bool:
    """Whether between an op and the function there are loops and branches alone."""
    parent = op.parent_op()
    while isinstance(parent, scf.ForOp | scf.IfOp | scf.WhileOp):
        parent = parent.parent_op()
    return parent is not None and isinstance(parent.regions[0].blocks.first, Block) and parent.name == "tt.func"
