"""Finds up to which element anybody sees of a scan (`plan/needed.py`).

    c = tl.arange(0, 512)
    tl.store(o + c, tl.cumsum(x, 0), mask=c < n)            n = 333: elements 0 to 332 are needed

The loop along its axis ends there; what it does not write is stored nowhere. What runs from the end is done all.
"""

from __future__ import annotations

from deuteron.backend.cpu.plan.needed import computed_of, may_divide, needed_along, stores_of
from deuteron.backend.cpu.plan.roots import ScanRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.tiles.private import nests_of


def find_needed_scans(plan: Plan) -> None:
    """Give scans the limits of each of their stores, the lowest of which is the end of what the store shows."""
    for nest in nests_of(plan.body):
        for root in nest.roots:
            if isinstance(root, ScanRoot) and not root.op.reverse.value.data:
                _find(plan, root)


def _find(plan: Plan, root: ScanRoot) -> None:
    computed = computed_of(root.op)
    stores = computed and stores_of(computed)
    if stores and not may_divide(root.op):
        root.needed = needed_along(plan, root.op, computed, stores, root.axis)
