"""Loads whose lanes lie at known distances from the first one, so close together that vectors hold all of them.

    i = pid * 1024 + tl.arange(0, 1024)
    w = tl.load(p + i // 2)                     of 16 lanes: 0 0 1 1 2 2 ... 7 7, one vector of 8 elements, shuffled
    (w >> (i % 2) * 4) & 15                     i % 2: 0 1 0 1 ..., numbers

What is known of neighbours says `analysis/axis/distances.py`, where it takes signed numbers that are divided not to be
negative. So that is known of each division that a load depends on, or found out before the nest: the guards of
`quotients.py`. Quotients that all lanes have in common, and elements that follow one another, are known without.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.distances import Distances
from deuteron.backend.cpu.memory.elements import memory_type
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Exchanged, Index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.backend.llvm.types import byte_width
from deuteron.ir.reached import reached
from deuteron.ir.types import element_type_of, is_tile

_PAGE_BYTES = 4096  # of the smallest pages: what lies between two elements of one is in their pages
_Taken = tuple[Operation, Index]

Guards = Mapping[Operation, Sequence[Hashable] | None]
"""What has to be found out before a nest for divisions to be of what is not negative; None where that cannot be."""


@dataclass(frozen=True)
class KnownDistances:
    """Of loads and divisions; `guards`: what has to hold for them. `are_all`: whether no other load is irregular."""

    distances: dict[Operation, Distances]
    guards: tuple[Hashable, ...]
    are_all: bool


def find_distances(
    plan: Plan, nest: Nest, axis: int, lanes: int, guards: Guards, relied_on: Collection[Hashable], steps: Steps
) -> KnownDistances:
    """Of the loads of a nest that are irregular by these steps, and of the divisions that they depend on; of others
    where nothing more has to hold. `relied_on`: the guards that have to hold anyway.
    """
    finder = _Finder(plan, axis, lanes, guards, relied_on)
    reads = [plan.reader.reads(root) for root in nest.roots]
    loads = [(load, index) for one in reads for load, index in one.loads if axis in index]
    quotients = [(op, index) for one in reads for op, index in one.quotients if axis in index]
    irregular = [(load, index) for load, index in loads if steps.along(load.ptr, index, axis) == IRREGULAR]
    for load, index in irregular:
        finder.add_load(load, index)
    for op, index in quotients:
        finder.add_division(op, index)
    if not _have_one_dimension(finder.found, [*loads, *quotients], axis):
        return KnownDistances({}, tuple(relied_on), not irregular)
    are_all = all(load in finder.found for load, _ in irregular)
    return KnownDistances(finder.found, tuple(finder.relied_on), are_all)


def _have_one_dimension(found: Collection[Operation], taken: Sequence[_Taken], axis: int) -> bool:
    """Whether all that is taken of each of these runs along one of its dimensions."""
    dimensions = {(op, index.index(axis)) for op, index in taken if op in found}
    return len(dimensions) == len(found)


def num_vectors(distances: Distances, lanes: int, load: Operation) -> int:
    """How many vectors hold what lanes at distances load; 0 where that is not less work than an access for each, or
    where there may be no memory between them.
    """
    if max(distances.distances) - min(distances.distances) >= _PAGE_BYTES:
        return 0
    count = len(starts_of_vectors(numbers_of(distances, load), lanes))
    return count if count <= lanes // 2 else 0


def numbers_of(distances: Distances, load: Operation) -> list[int]:
    """How many elements after the first lane's each one's is."""
    num_bytes = byte_width(memory_type(element_type_of(load.results[0].type)))
    return [(distance - distances.distances[0]) // num_bytes for distance in distances.distances]


def starts_of_vectors(numbers: Collection[int], lanes: int) -> list[int]:
    """Where vectors of so many lanes begin that hold elements with all of these numbers: at one of them each."""
    starts: list[int] = []
    for number in sorted(set(numbers)):
        if not starts or number >= starts[-1] + lanes:
            starts.append(number)
    return starts


class _Finder:
    def __init__(self, plan: Plan, axis: int, lanes: int, guards: Guards, relied_on: Collection[Hashable]):
        self._plan, self._axis, self._lanes, self._guards = plan, axis, lanes, guards
        self.found: dict[Operation, Distances] = {}
        self.relied_on = dict.fromkeys(relied_on)

    def add_load(self, load: Operation, index: Index) -> None:
        known = self._of(load.ptr, index)
        needed = self._needed(load.ptr, index) if known and num_vectors(known, self._lanes, load) else None
        if needed is not None:
            self.found[load] = known
            self.relied_on |= needed

    def add_division(self, op: Operation, index: Index) -> None:
        known, needed = self._of(op.results[0], index), self._needed(op.results[0], index)
        if known is not None and needed is not None and needed.keys() <= self.relied_on.keys():
            self.found[op] = known

    def _of(self, value: SSAValue, index: Index) -> Distances | None:
        return self._plan.storage.distances(value, index.index(self._axis), self._lanes)

    def _needed(self, value: SSAValue, index: Index) -> dict[Hashable, None] | None:
        """The guards of the divisions that change along the axis by which a tile is computed; None where one may be of
        something negative, or not all is computed here.
        """
        taken = list(reached([(value, index)], self._operands))
        if any(one in self._plan.places or not self._is_computed(one) or _is_exchanged(at) for one, at in taken):
            return None
        guards = [self._guards[one.owner] for one, _ in taken if isinstance(one.owner, QUOTIENTS)]
        return None if None in guards else dict.fromkeys(chain(*guards))

    def _is_computed(self, value: SSAValue) -> bool:
        return isinstance(value.owner, Operation) or value in self._plan.storage.inductions

    def _operands(self, taken: tuple[SSAValue, Index]) -> list[tuple[SSAValue, Index]]:
        value, index = taken
        if value in self._plan.storage.inductions:
            return [(self._plan.storage.inductions[value].initial, index)]
        if value in self._plan.places or not isinstance(value.owner, Operation):
            return []
        operands = ops.declared(value.owner).operands_at(value.owner, index)
        return [(one, at) for one, at in operands if is_tile(one.type) and self._axis in at]


def _is_exchanged(index: Index) -> bool:
    return any(isinstance(entry, Exchanged) for entry in index)
