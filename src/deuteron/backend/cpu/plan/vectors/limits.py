"""Where the masks of a nest have limits: comparisons of what counts up along a dimension with what is the same there.

    c = tl.arange(0, 1024)
    x = tl.load(p + r * n + c, mask=(c < n) & (r < rows), other=-inf)       c < n: below n;  r < rows: fixed along c

The loop over the dimension runs in parts then (`parts.py`): up to the first limit, where no lane has to be asked for;
to the last one, with masks; and beyond it, where nothing is loaded. `ends`: there is nothing to do beyond it.

What was widened may have wrapped around before, so that its limit is none, but for ranges, which do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Exchanged, Index, identity_index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR, Step
from deuteron.backend.cpu.plan.ops.elementwise import WIDENING
from deuteron.backend.cpu.plan.roots import StoreRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.mask_limits import FullMask, Limit
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.arith import CmpIOp
from deuteron.ir.tt.shape import MakeRangeOp
from deuteron.ir.types import bit_width_of, is_tile, shape_of

_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_LEAST_BITS = 32  # of a comparison with a limit: as many as the extent of a tile has


@dataclass(frozen=True)
class Limits:
    """Those along a dimension; `fixed`: comparisons that are the same along it, with which they are combined; `others`:
    those along the other dimension of blocks.
    """

    limits: tuple[Limit, ...]
    fixed: tuple[tuple[Operation, Index], ...]
    ends: bool
    others: tuple[Limit, ...] = ()


def find_limits(plan: Plan, nest: Nest, axis: int, across: int | None = None) -> Limits | None:
    """The limits of the masks of a nest along a dimension, in blocks along it and another one if that is `across`; None
    where there are none.
    """
    inside = [other for other in dict.fromkeys((nest.reduced_axis, across)) if other not in (None, axis)]
    steps, inner = _StepsOfNumbers(plan), [axis, *inside]
    limits: dict[tuple[Operation, Index], Limit] = {}
    fixed: dict[tuple[Operation, Index], None] = {}
    others: dict[Limit, None] = {}
    is_ended = []
    bodies = {loop.op.body.block for loop in nest.loops}
    for mask, index, is_store in _masks(plan, nest):
        compared = [taken for taken in _compared(plan, mask, index) if taken[0].parent_block() not in bodies]
        found = {taken: _limit(steps, *taken, inner) for taken in compared}
        known = {taken: limit for taken, limit in found.items() if limit is not None}
        if is_store:
            is_ended.append(any(limit.is_below for limit in known.values()))
        if known:
            limits.update(known)
            fixed.update((taken, None) for taken in compared if _is_fixed(steps, *taken, inner))
            found_across = [_limit(steps, *taken, inner[::-1]) for taken in compared if across is not None]
            others.update((limit, None) for limit in found_across if limit is not None)
    if not limits:
        return None
    ends = len(is_ended) == len(nest.roots) - len(nest.loops) and all(is_ended)
    return Limits(tuple(limits.values()), tuple(fixed), ends, tuple(others))


def full_mask(plan: Plan, mask: SSAValue) -> FullMask | None:
    """None where it is made of anything else."""
    steps, limits, fixed = _StepsOfNumbers(plan), [], []
    for value, index in _conditions(plan, mask, identity_index(shape_of(mask.type))):
        op = value.owner
        if not _is_comparison(op, index):
            return None
        found = [(limit, axis) for axis in range(2) if (limit := _limit(steps, op, index, (axis, 1 - axis)))]
        if not found and not _is_fixed(steps, op, index, (0, 1)):
            return None
        limits += found
        fixed += [] if found else [(op, index)]
    return FullMask(tuple(limits), tuple(fixed))


def limits_of(plan: Plan, mask: SSAValue, index: Index, axes: Sequence[int]) -> list[Limit]:
    """Those of a mask that is taken at an index along the first of these axes, which are the same along the others."""
    steps = _StepsOfNumbers(plan)
    compared = _compared(plan, mask, index)
    return [limit for taken in compared if (limit := _limit(steps, *taken, axes)) is not None]


def _masks(plan: Plan, nest: Nest) -> Iterator[tuple[SSAValue, Index, bool]]:
    """The masks of the loads and stores of a nest, the indices at which they are taken, and whether it is a store's."""
    for root in nest.roots:
        for load, index in plan.reader.reads(root).loads:
            if load.mask is not None:
                yield load.mask, index, False
        if isinstance(root, StoreRoot) and root.op.mask is not None:
            yield root.op.mask, identity_index(nest.shape), True


def _compared(plan: Plan, mask: SSAValue, index: Index) -> Iterator[tuple[Operation, Index]]:
    """The comparisons of tiles that all have to be true where a mask is on, as far as they are computed here."""
    for value, at in _conditions(plan, mask, index):
        if is_tile(value.type) and value not in plan.places and _is_comparison(value.owner, at):
            yield value.owner, at


def _is_comparison(op: Operation | Block, index: Index) -> bool:
    return isinstance(op, CmpIOp) and not any(isinstance(entry, Exchanged) for entry in index)


def _conditions(plan: Plan, mask: SSAValue, index: Index) -> Iterator[tuple[SSAValue, Index]]:
    """What all has to be true where a mask is on."""
    pending = [(mask, index)]
    while pending:
        value, at = pending.pop()
        op = value.owner
        is_computed = isinstance(op, Operation) and is_tile(value.type) and value not in plan.places
        if is_computed and (isinstance(op, arith.AndIOp) or _forwards(op)):
            pending += ops.declared(op).operands_at(op, at)
        else:
            yield value, at


def _forwards(op: Operation) -> bool:
    return ops.declared(op).forwards and not ops.declared(op).is_view(op)


def _limit(steps: Steps, op: Operation, index: Index, inner: Sequence[int]) -> Limit | None:
    """The limit of a comparison along the first of the inner dimensions."""
    sign, relation = op.predicate_name[:1], op.predicate_name[1:]
    if relation not in _SWAPPED or bit_width_of(op.operands[0].type) < _LEAST_BITS:
        return None
    grown = [[steps.along(operand, index, axis) for axis in inner] for operand in op.operands]
    counting, still = [1, *[0] * (len(inner) - 1)], [0] * len(inner)
    counted, bound = op.operands
    if grown == [still, counting]:
        counted, bound, relation = bound, counted, _SWAPPED[relation]
    elif grown != [counting, still]:
        return None
    return Limit(op, index, counted, bound, sign == "s", relation in ("lt", "le"), relation in ("le", "gt"))


def _is_fixed(steps: Steps, op: Operation, index: Index, inner: Sequence[int]) -> bool:
    """Whether a comparison is the same along the inner dimensions."""
    return all(steps.along(operand, index, axis) == 0 for operand in op.operands for axis in inner)


class _StepsOfNumbers(Steps):
    """Steps of integers as they are compared: what may wrap around before it is widened has none."""

    def __init__(self, plan: Plan):
        super().__init__(plan)
        self._known = {}

    def _compute(self, taken: tuple[SSAValue, Index, int]) -> Step:
        step, op = super()._compute(taken), taken[0].owner
        if step == 0 or not isinstance(op, WIDENING):
            return step
        return step if isinstance(ops.forwarded(op.operands[0]).owner, MakeRangeOp) else IRREGULAR
