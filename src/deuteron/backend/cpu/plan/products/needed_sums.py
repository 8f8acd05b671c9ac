"""Finds which rows and columns of a product anybody sees (`plan/needed.py`).

    for k in ...: acc = tl.dot(a, b, acc)                           tiles of 16 rows, M = 1
    tl.store(c + ..., acc, mask=(rows < M)[:, None] & ...)          rows below M - rows[0] are needed

What is beyond them is not computed: it keeps what the sums begin with, and no store shows it. Stores whose addresses
are known at the product are awaited (`rules/awaited.py`).
"""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import dots_of
from deuteron.backend.cpu.plan.needed import Store, blocks_around, computed_of, is_known, needed_along, stores_of
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.types import shape_of


def find_needed_sums(plan: Plan) -> None:
    """Give products the limits of each of their stores; the rows, and columns, below one of each store, the lowest, are
    needed. Also the stores that those of a loop's steps await.
    """
    for item in dots_of(plan.body):
        op = item.op
        computed = computed_of(op) if len(shape_of(op.result.type)) == 2 else None
        stores = computed and stores_of(computed)
        if stores:
            item.needed_rows, item.needed_columns = (needed_along(plan, op, computed, stores, axis) for axis in (0, 1))
            item.awaited = tuple(store for store in stores if item.steps > 1 and _is_awaited(plan, op, store))


def _is_awaited(plan: Plan, op: Operation, store: Store) -> bool:
    """Whether a store is of rows of neighbours, and where they are is known at the product."""
    if store.parent_block() not in blocks_around(op) or not is_known(plan, store.ptr, op):
        return False
    return Steps(plan).along(store.ptr, identity_index(shape_of(store.ptr.type)), 1) == 1
