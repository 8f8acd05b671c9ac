"""Finds which rows of a product anybody sees: where all that is computed of it is stored under a mask with a limit.

    for k in ...: acc = tl.dot(a, b, acc)                           tiles of 16 rows, M = 1
    tl.store(c + ..., acc, mask=(rows < M)[:, None] & ...)          rows below M - rows[0] are needed

Rows from there on are not computed: they keep what the sums begin with, and no store shows it. What stands between the
product and its stores is arithmetic, element by element. The limit is computed at the product, so of what is known
there: arguments, program ids, scalars of the loops around it. Stores whose addresses are known there, too, are awaited
(`rules/awaited.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.core import BlockArgument

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import dots_of
from deuteron.backend.cpu.plan.limits import limits_of
from deuteron.backend.cpu.plan.mask_limits import Limit
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.steps import Steps
from deuteron.backend.cpu.plan.steps_together import is_sum_of_loop
from deuteron.ir.effects import is_pure
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import is_tile, shape_of


def find_needed_rows(plan: Plan) -> None:
    """Give products the limits of each of their stores; the rows below one of each store, the lowest, are needed. Also
    the stores that those of a loop's steps await.
    """
    for item in dots_of(plan.body):
        stores = _stores_of(item.op) if len(shape_of(item.op.result.type)) == 2 else None
        if stores:
            limits = [_known_limits(plan, item.op, store) for store in stores]
            item.needed_rows = tuple(limits) if all(limits) else ()
            item.awaited = tuple(store for store in stores if item.steps > 1 and _is_awaited(plan, item.op, store))


def _is_awaited(plan: Plan, op: Operation, store: StoreOp) -> bool:
    """Whether a store is of rows of neighbours, and where they are is known at the product."""
    if store.parent_block() not in _blocks_around(op) or not _is_known(plan, store.ptr, op):
        return False
    return Steps(plan).along(store.ptr, identity_index(shape_of(store.ptr.type)), 1) == 1


def _stores_of(op: Operation) -> list[StoreOp] | None:
    """Those of what is computed of a product; None if it is used for anything else."""
    result = op.parent_op().results[op.c.index - 1] if is_sum_of_loop(op) else op.result
    stores, pending, seen = [], [result], {result}
    while pending:
        value = pending.pop()
        for use in value.uses:
            if isinstance(use.operation, StoreOp) and use.operation.operands[use.index] is use.operation.value:
                stores.append(use.operation)
            elif not _is_by_element(use.operation, value):
                return None
            pending += [made for made in use.operation.results if made not in seen]
            seen.update(use.operation.results)
    return stores


def _is_by_element(op: Operation, operand: SSAValue) -> bool:
    """Whether an element of what it computes is computed of the operand's element at the same index."""
    declared, index = ops.declared(op), identity_index(shape_of(operand.type))
    if not declared.is_lazy(op) or declared.is_view(op) or isinstance(op, LoadOp) or not is_pure(op):
        return False
    same = all(is_tile(made.type) and shape_of(made.type) == shape_of(operand.type) for made in op.results)
    return same and all(at == index for value, at in declared.operands_at(op, index) if value is operand)


def _known_limits(plan: Plan, op: Operation, store: StoreOp) -> tuple[Limit, ...]:
    if store.mask is None or store.parent_block() not in _blocks_around(op):
        return ()
    return tuple(
        limit
        for limit in limits_of(plan, store.mask)
        if limit.is_below and all(_is_known(plan, value, op) for value in (limit.counted, limit.bound))
    )


def _is_known(plan: Plan, value: SSAValue, at: Operation) -> bool:
    """Whether a value can be computed where an op stands."""
    around, pending, seen = set(_blocks_around(at)), [value], {value}
    while pending:
        value = pending.pop()
        if value in plan.places or value in plan.storage.inductions:
            return False
        if isinstance(value, BlockArgument):
            if is_tile(value.type) or value.owner not in around:
                return False
            continue
        if value.owner.regions or not is_pure(value.owner):
            return False
        pending += [operand for operand in value.owner.operands if operand not in seen]
        seen.update(value.owner.operands)
    return True


def _blocks_around(op: Operation | None) -> Iterator[Block]:
    while op is not None and (block := op.parent_block()) is not None:
        yield block
        op = block.parent_op()
