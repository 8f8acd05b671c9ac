"""Divisions of indices that vectors do once, instead of lane by lane.

    x = pid * 1024 + tl.arange(0, 1024)
    tl.load(p + x % 96 + 128 * (x // 96))           16 lanes, of which the first is a multiple of 16, as 96 is:
                                                    x // 96 is the same in all of them, x % 96 counts up by one

So the load is one of 16 neighbours. That holds of signed numbers where none is negative (division rounds towards zero),
which is tested before the nest: `Guard`. Where it fails the nest runs element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Exchanged, Index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR, Step
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.accesses import Access, accesses_of
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS, REMAINDERS, neighbours_of_one_quotient
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.arith import constant_value
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.reached import reached
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
    """The divisions of a nest that are done once for as many lanes as `lanes` at most, if the guards hold: in an order,
    so that equal kernels become equal code.
    """

    lanes: int
    ops: frozenset[Operation] = frozenset()
    guards: tuple[Guard, ...] = ()


def find_quotients(plan: Plan, nest: Nest, axis: int, lanes: int) -> Quotients:
    """Those of a nest that is vectorised along an axis; half as many lanes are worth it, fewer are not."""
    along = _along(plan, nest, axis)
    if not along:
        return Quotients(lanes)
    infos, steps = plan.storage.infos, Steps(plan)
    groups: dict[Operation, int] = {}
    guards: dict[Operation, list[Guard]] = {}
    for op, index in along:
        needed = _guards(steps, nest, op.operands[0], index) if isinstance(op, SIGNED) else []
        size = 1 if needed is None else neighbours_of_one_quotient(infos, op, index.index(axis))
        groups[op] = min(size, groups.get(op, size))
        guards.setdefault(op, []).extend(needed or ())
    regular = [op for op, size in groups.items() if size >= max(2, lanes // 2)]
    found = dict.fromkeys(guard for op in regular for guard in guards[op])
    return Quotients(min([lanes, *(groups[op] for op in regular)]), frozenset(regular), tuple(found))


def accesses_of_vectors(plan: Plan, nest: Nest, axis: int, lanes: int) -> list[Access]:
    """What a nest accesses where vectors along an axis divide once, as far as they can."""
    return accesses_of(plan, nest, _StepsOfVectors(plan, axis, lanes) if _along(plan, nest, axis) else None)


def regular_lanes(plan: Plan, nest: Nest, axis: int, lanes: int) -> int:
    """The lanes of vectors that do all divisions along an axis once; 0 where there are none."""
    quotients = find_quotients(plan, nest, axis, lanes)
    return quotients.lanes if {op for op, _ in _along(plan, nest, axis)} == quotients.ops else 0


def _along(plan: Plan, nest: Nest, axis: int) -> list[tuple[Operation, Index]]:
    """The divisions that change along an axis."""
    taken = [quotient for root in nest.roots for quotient in plan.reader.reads(root).quotients]
    return [(op, index) for op, index in taken if axis in index]


class _StepsOfVectors(Steps):
    """Steps where all lanes of a vector along an axis, or of half of one, have one quotient."""

    def __init__(self, plan: Plan, axis: int, lanes: int):
        super().__init__(plan)
        self._known = {}
        self._axis, self._lanes = axis, lanes

    def _compute(self, taken: tuple[SSAValue, Index, int]) -> Step:
        step, (value, index, axis) = super()._compute(taken), taken
        op = value.owner
        if step != IRREGULAR or axis != self._axis or not isinstance(op, QUOTIENTS) or value in self._plan.places:
            return step
        if axis not in index or not self._divides_once(op, index.index(axis)):
            return step
        return self._known[self._inputs(taken)[0]] if isinstance(op, REMAINDERS) else 0

    def _divides_once(self, op: Operation, dimension: int) -> bool:
        return neighbours_of_one_quotient(self._plan.storage.infos, op, dimension) >= max(2, self._lanes // 2)


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
