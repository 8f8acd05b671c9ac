"""Finds what anybody sees of a tile: where all that is computed of it is stored under masks with limits.

    s = tl.cumsum(x)
    tl.store(o + i, s + 1, mask=i < n)              of s what is below n - i[0] is needed

What stands between the tile and its stores is arithmetic, element by element, also from one iteration of a loop to the
next. An atomic that combines elements with memory is such a store. A limit is computed at an op, so of what is known
there: arguments, program ids, scalars of the loops around it. Where a loop carries the tile, that is what is known
before the loop: a store of a later iteration may have another limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.ir.core import BlockArgument

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.limits import limits_of
from deuteron.backend.cpu.plan.vectors.mask_limits import Limit
from deuteron.backend.cpu.plan.vectors.regular_quotients import QUOTIENTS
from deuteron.ir.effects import is_pure
from deuteron.ir.reached import operands_of, reached
from deuteron.ir.tt.atomic import AtomicRMWOp
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import is_tile, shape_of

Store = StoreOp | AtomicRMWOp

_DIVISIONS = (*QUOTIENTS, arith.FloorDivSIOp, arith.CeilDivSIOp)
_ADDED, _BOUNDS = 2, 3  # the operand of a product that it is added to, and of a loop those before the carried ones


def computed_of(op: Operation) -> Collection[SSAValue] | None:
    """What is computed of an op's results, element by element; None if that is used for anything but to be stored."""
    pending, seen = [*op.results], dict.fromkeys(op.results)
    while pending:
        value = pending.pop()
        for use in value.uses:
            made = [] if _is_stored(use) else _made_by_element(use, value)
            if made is None:
                return None
            pending += [one for one in made if one not in seen]
            seen.update(dict.fromkeys(made))
    return seen


def stores_of(computed: Collection[SSAValue]) -> list[Store]:
    uses = [use for value in computed for use in value.uses]
    return [use.operation for use in uses if _is_stored(use)]


def may_divide(op: Operation) -> bool:
    """Whether integers are divided that are computed of an op's results, which are only stored in the end."""
    users = [use.operation for value in computed_of(op) or () for use in value.uses]
    return any(isinstance(user, _DIVISIONS) or (user.regions and not isinstance(user, scf.ForOp)) for user in users)


def needed_along(
    plan: Plan, op: Operation, computed: Collection[SSAValue], stores: Sequence[Store], axis: int
) -> tuple[tuple[Limit, ...], ...]:
    """The limits of each store of what is computed of an op's results: what is below one of each store, the lowest, is
    needed. Empty where not all stores have limits that are known.
    """
    begin, around = _begin_of(op, computed), set(blocks_around(op))
    limits = [_limits_of_store(plan, begin, store, axis) for store in stores if store.parent_block() in around]
    return tuple(limits) if len(limits) == len(stores) and all(limits) else ()


def known_limits(plan: Plan, op: Operation, limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Those beyond which a mask is off that can be computed where an op stands."""
    return tuple(
        limit
        for limit in limits
        if limit.is_below and all(is_known(plan, value, op) for value in (limit.counted, limit.bound))
    )


def is_known(plan: Plan, value: SSAValue, at: Operation) -> bool:
    """Whether a value can be computed where an op stands."""
    around = set(blocks_around(at))

    def is_known_there(one: SSAValue) -> bool:
        if one in plan.places or one in plan.storage.inductions:
            return False
        if isinstance(one, BlockArgument):
            return one.owner in around and not is_tile(one.type)
        return not one.owner.regions and is_pure(one.owner)

    return all(map(is_known_there, reached([value], operands_of)))


def blocks_around(op: Operation | None) -> Iterator[Block]:
    while op is not None and (block := op.parent_block()) is not None:
        yield block
        op = block.parent_op()


def _begin_of(op: Operation, computed: Collection[SSAValue]) -> Operation:
    """The outermost of the loops that carry what is computed of an op's results to the next one; the op where none
    does.
    """
    carrying = [block.parent_op() for block in blocks_around(op) if any(value.owner is block for value in computed)]
    return carrying[-1] if carrying else op


def _limits_of_store(plan: Plan, op: Operation, store: Store, axis: int) -> tuple[Limit, ...]:
    if store.mask is None:
        return ()
    index = identity_index(shape_of(store.mask.type))
    others = [other for other in range(len(index)) if other != axis]
    return known_limits(plan, op, limits_of(plan, store.mask, index, (axis, *others)))


def _is_stored(use: Use) -> bool:
    return isinstance(use.operation, Store) and use.operation.operands[use.index] is use.operation.value


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
