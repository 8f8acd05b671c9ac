"""Finds which rows and columns of a product anybody sees: where all that is computed of it is stored under a mask with
limits.

    for k in ...: acc = tl.dot(a, b, acc)                           tiles of 16 rows, M = 1
    tl.store(c + ..., acc, mask=(rows < M)[:, None] & ...)          rows below M - rows[0] are needed

An atomic that adds the sums to memory is such a store. What is beyond them is not computed: it keeps what the sums
begin with, and no store shows it. What stands between the
product and its stores is arithmetic, element by element, also from one iteration of a loop to the next, as where
attention scales its sums. The limit is computed at the product, so of what is known there: arguments, program ids,
scalars of the loops around it. Where a loop carries the sums, that is what is known before the loop: a store of a later
iteration may have another limit. Stores whose addresses are known at the product are awaited (`rules/awaited.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.ir.core import BlockArgument

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import dots_of
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.limits import limits_of
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.effects import is_pure
from deuteron.ir.reached import operands_of, reached
from deuteron.ir.tt.atomic import AtomicRMWOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import is_tile, shape_of

_DIVISIONS = (*QUOTIENTS, arith.FloorDivSIOp, arith.CeilDivSIOp)
_Store = StoreOp | AtomicRMWOp

_ADDED, _BOUNDS = 2, 3  # the operand of a product that it is added to, and of a loop those before the carried ones


def find_needed_sums(plan: Plan) -> None:
    """Give products the limits of each of their stores; the rows, and columns, below one of each store, the lowest, are
    needed. Also the stores that those of a loop's steps await.
    """
    for item in dots_of(plan.body):
        computed = _computed_of(item.op) if len(shape_of(item.op.result.type)) == 2 else None
        stores = computed and _stores_of(computed)
        if stores:
            begin = _begin_of_sums(item.op, computed)
            item.needed_rows, item.needed_columns = (_needed(plan, item.op, begin, stores, axis) for axis in range(2))
            item.awaited = tuple(store for store in stores if item.steps > 1 and _is_awaited(plan, item.op, store))


def may_divide(op: DotOp) -> bool:
    """Whether integers are divided that are computed of a product's sums, which are only stored in the end."""
    users = [use.operation for value in _computed_of(op) or () for use in value.uses]
    return any(isinstance(user, _DIVISIONS) or (user.regions and not isinstance(user, scf.ForOp)) for user in users)


def _begin_of_sums(op: DotOp, computed: Collection[SSAValue]) -> Operation:
    """The outermost of the loops that carry what is computed of a product to the next one; the product where none
    does.
    """
    carrying = [block.parent_op() for block in _blocks_around(op) if any(value.owner is block for value in computed)]
    return carrying[-1] if carrying else op


def _needed(
    plan: Plan, op: Operation, begin: Operation, stores: Sequence[_Store], axis: int
) -> tuple[tuple[Limit, ...], ...]:
    around = set(_blocks_around(op))
    limits = [_known_limits(plan, begin, store, axis) for store in stores if store.parent_block() in around]
    return tuple(limits) if len(limits) == len(stores) and all(limits) else ()


def _is_awaited(plan: Plan, op: Operation, store: _Store) -> bool:
    """Whether a store is of rows of neighbours, and where they are is known at the product."""
    if store.parent_block() not in _blocks_around(op) or not _is_known(plan, store.ptr, op):
        return False
    return Steps(plan).along(store.ptr, identity_index(shape_of(store.ptr.type)), 1) == 1


def _stores_of(computed: Collection[SSAValue]) -> list[_Store]:
    uses = [use for value in computed for use in value.uses]
    return [use.operation for use in uses if _is_stored(use)]


def _computed_of(op: DotOp) -> Collection[SSAValue] | None:
    """What is computed of a product, element by element; None if it is used for anything else but to be stored."""
    pending, seen = [op.result], {op.result: None}
    while pending:
        value = pending.pop()
        for use in value.uses:
            made = [] if _is_stored(use) else _made_by_element(use, value)
            if made is None:
                return None
            pending += [one for one in made if one not in seen]
            seen.update(dict.fromkeys(made))
    return seen


def _is_stored(use: Use) -> bool:
    return isinstance(use.operation, _Store) and use.operation.operands[use.index] is use.operation.value


def _made_by_element(use: Use, value: SSAValue) -> Sequence[SSAValue] | None:
    """What an element of which is computed of the value's element at the same index; None if it is used otherwise."""
    op = use.operation
    if isinstance(op, DotOp) and use.index == _ADDED:
        return op.results
    if isinstance(op, scf.YieldOp) and isinstance(loop := op.parent_op(), scf.ForOp):
        return [loop.results[use.index], loop.body.block.args[use.index + 1]]
    if isinstance(op, scf.ForOp):
        number = use.index - _BOUNDS
        return [op.results[number], op.body.block.args[number + 1]]
    return op.results if _is_by_element(op, value) else None


def _is_by_element(op: Operation, operand: SSAValue) -> bool:
    """Whether an element of what it computes is computed of the operand's element at the same index."""
    declared, index = ops.declared(op), identity_index(shape_of(operand.type))
    if not declared.is_lazy(op) or declared.is_view(op) or isinstance(op, LoadOp) or not is_pure(op):
        return False
    same = all(is_tile(made.type) and shape_of(made.type) == shape_of(operand.type) for made in op.results)
    return same and all(at == index for value, at in declared.operands_at(op, index) if value is operand)


def _known_limits(plan: Plan, op: Operation, store: _Store, axis: int) -> tuple[Limit, ...]:
    if store.mask is None:
        return ()
    index = identity_index(shape_of(store.mask.type))
    return known_limits(plan, op, limits_of(plan, store.mask, index, (axis, 1 - axis)))


def known_limits(plan: Plan, op: Operation, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Those beyond which a mask is off that can be computed where an op stands."""
    return tuple(
        limit
        for limit in limits
        if limit.is_below and all(_is_known(plan, value, op) for value in (limit.counted, limit.bound))
    )


def _is_known(plan: Plan, value: SSAValue, at: Operation) -> bool:
    """Whether a value can be computed where an op stands."""
    around = set(_blocks_around(at))

    def is_known(one: SSAValue) -> bool:
        if one in plan.places or one in plan.storage.inductions:
            return False
        if isinstance(one, BlockArgument):
            return one.owner in around and not is_tile(one.type)
        return not one.owner.regions and is_pure(one.owner)

    return all(map(is_known, reached([value], operands_of)))


def _blocks_around(op: Operation | None) -> Iterator[Block]:
    while op is not None and (block := op.parent_block()) is not None:
        yield block
        op = block.parent_op()
