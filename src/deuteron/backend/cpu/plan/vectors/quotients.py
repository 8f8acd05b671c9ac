"""Divisions of indices that vectors do once, instead of lane by lane.

    x = pid * 1024 + tl.arange(0, 1024)
    tl.load(p + x % 96 + 128 * (x // 96))           16 lanes, of which the first is a multiple of 16, as 96 is:
                                                    x // 96 is the same in all of them, x % 96 counts up by one

So the load is one of 16 neighbours. That holds of signed numbers where none is negative (division rounds towards zero),
which is tested before the nest: `Guard`. Where it fails the nest runs element by element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.distances import Distances
from deuteron.analysis.axis.ranges import largest_in_any_grid
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Exchanged, Index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR, Step
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.accesses import Access, accesses_of
from deuteron.backend.cpu.plan.vectors.known_distances import find_distances, num_vectors
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS, REMAINDERS, neighbours_of_one_quotient
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.arith import constant_value
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.reached import reached
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import MakeRangeOp
from deuteron.ir.types import bit_width_of, is_tile

SIGNED = (arith.DivSIOp, arith.RemSIOp)


@dataclass(frozen=True)
class Guard:
    """A tile of integers grows along a nest; no element is negative where the first is one of 0 ... `most`."""

    value: SSAValue
    index: Index
    most: int


@dataclass(frozen=True)
class Quotients:
    """The divisions of a nest that are done once for as many lanes as `lanes` at most, and the `distances` of lanes of
    other divisions, and of addresses that are loaded from; if the guards hold. In an order, so that equal kernels
    become equal code.
    """

    lanes: int
    ops: frozenset[Operation] = frozenset()
    guards: tuple[Guard, ...] = ()
    distances: Mapping[Operation, Distances] = field(default_factory=dict)


def find_quotients(plan: Plan, nest: Nest, axis: int, lanes: int) -> Quotients:
    """Those of a nest that is vectorised along an axis; half as many lanes are worth it, fewer are not."""
    steps = Steps(plan)
    groups: dict[Operation, int] = {}
    guards: dict[Operation, list[Guard] | None] = {}
    for op, index in _along(plan, nest, axis):
        needed, known = _guards_of(steps, nest, op, index), guards.get(op, [])
        size = 1 if needed is None else neighbours_of_one_quotient(plan.storage.infos, op, index.index(axis))
        groups[op] = min(size, groups.get(op, size))
        guards[op] = None if needed is None or known is None else known + needed

    def in_groups_of(least: int) -> tuple[Quotients, bool]:
        regular = [op for op, size in groups.items() if size >= least]
        count = min([lanes, *(groups[op] for op in regular)])
        relied_on = dict.fromkeys(guard for op in regular for guard in guards[op] or ())
        found = find_distances(plan, nest, axis, count, guards, relied_on, _StepsOfVectors(plan, axis, least))
        return Quotients(count, frozenset(regular), found.guards, found.distances), found.are_all

    whole, are_all = in_groups_of(lanes)
    return whole if are_all else in_groups_of(_least_group(lanes))[0]


def accesses_of_vectors(plan: Plan, nest: Nest, axis: int, lanes: int) -> list[Access]:
    """What a nest accesses where vectors along an axis divide once, as far as they can."""
    steps = _StepsOfVectors(plan, axis, _least_group(lanes)) if _along(plan, nest, axis) else None
    accesses, distances = accesses_of(plan, nest, steps), find_quotients(plan, nest, axis, lanes).distances
    found = {op.results[0]: num_vectors(one, lanes, op) for op, one in distances.items() if isinstance(op, LoadOp)}
    return [replace(access, num_vectors=found.get(access.read, 0)) for access in accesses]


def _least_group(lanes: int) -> int:
    return max(2, lanes // 2)


def regular_lanes(plan: Plan, nest: Nest, axis: int, lanes: int) -> int:
    """The lanes of vectors that do all divisions along an axis once; 0 where there are none."""
    quotients = find_quotients(plan, nest, axis, lanes)
    return quotients.lanes if {op for op, _ in _along(plan, nest, axis)} == quotients.ops else 0


def _along(plan: Plan, nest: Nest, axis: int) -> list[tuple[Operation, Index]]:
    """The divisions that change along an axis."""
    taken = [quotient for root in nest.roots for quotient in plan.reader.reads(root).quotients]
    return [(op, index) for op, index in taken if axis in index]


class _StepsOfVectors(Steps):
    """Steps where the lanes of a vector along an axis, of at least so many elements, have one quotient."""

    def __init__(self, plan: Plan, axis: int, least: int):
        super().__init__(plan)
        self._known = {}
        self._axis, self._least = axis, least

    def _compute(self, taken: tuple[SSAValue, Index, int]) -> Step:
        step, (value, index, axis) = super()._compute(taken), taken
        op = value.owner
        if step != IRREGULAR or axis != self._axis or not isinstance(op, QUOTIENTS) or value in self._plan.places:
            return step
        if axis not in index or not self._divides_once(op, index.index(axis)):
            return step
        return self._known[self._inputs(taken)[0]] if isinstance(op, REMAINDERS) else 0

    def _divides_once(self, op: Operation, dimension: int) -> bool:
        return neighbours_of_one_quotient(self._plan.storage.infos, op, dimension) >= self._least


def _guards_of(steps: Steps, nest: Nest, op: Operation, index: Index) -> list[Guard] | None:
    """What has to hold for a division to round down; None where that is not known."""
    if not isinstance(op, SIGNED) or largest_in_any_grid(op.operands[0]) is not None:
        return []
    return _guards(steps, nest, op.operands[0], index)


def _guards(steps: Steps, nest: Nest, value: SSAValue, index: Index) -> list[Guard] | None:
    """What has to hold for a tile to have no negative elements; None where that is not known."""
    while isinstance(value.owner, Operation):
        op = value.owner
        if isinstance(op, QUOTIENTS) and (constant_value(op.operands[1]) or 0) > 0:
            value = op.operands[0]
        elif isinstance(op, ExtSIOp) or (ops.declared(op).forwards and not ops.declared(op).is_view(op)):
            ((value, index),) = ops.declared(op).operands_at(op, index)
        else:
            break
    if _may_have_wrapped(value) or any(isinstance(entry, Exchanged) for entry in index):
        return None
    along = [(steps.along(value, index, axis), nest.shape[axis]) for axis in index if isinstance(axis, int)]
    if not all(isinstance(step, int) and step >= 0 for step, _ in along):
        return None
    growth = sum(step * (extent - 1) for step, extent in along)
    most = (1 << (bit_width_of(value.type) - 1)) - 1 - growth
    return [Guard(value, index, most)] if most >= 0 else None


def _may_have_wrapped(value: SSAValue) -> bool:
    """Whether a tile is computed from one that was widened, and may have wrapped around before: no range does."""
    tiles = (one.owner for one in reached([value], _operands_of_tile) if is_tile(one.type))
    widened = (op.operands[0] for op in tiles if isinstance(op, ExtSIOp))
    return any(not isinstance(ops.forwarded(source).owner, MakeRangeOp) for source in widened)


def _operands_of_tile(value: SSAValue) -> Sequence[SSAValue]:
    return value.owner.operands if isinstance(value.owner, Operation) and is_tile(value.type) else ()
