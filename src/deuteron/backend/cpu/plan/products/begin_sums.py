"""Has the first product of a loop begin its sums, where the loop begins them with 0: they are not cleared before it.

    Nest(Keep(0, home))                     if the loop does not run: Nest(Keep(0, home))
    For(Dot(..., home))                     For(Dot(..., home, begins_sums))        of its first steps: home = A @ B

That is for products of several steps of a loop that are computed together, of which nothing else in the loop sees the
sums (`steps_together.py`): to clear 64 x 64 of them and to read them takes as long as products on tiles of a depth of
32. What of them is not needed (`needed_sums.py`) is not written at all then; integers that are divided, or that
something is divided by, are cleared where there is such.
"""

from __future__ import annotations

from deuteron.backend.cpu.plan.items import Dot, For, Nest, regions_of
from deuteron.backend.cpu.plan.needed import may_divide
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.tiles.private import drop_empty_nests
from deuteron.ir.arith import is_positive_zero
from deuteron.ir.types import is_float


def begin_sums(plan: Plan) -> None:
    """Mark the products, and put what clears their sums into nests of their own."""
    _begin_in(plan.body)
    drop_empty_nests(plan.body)


def _begin_in(region: Region) -> None:
    for item in list(region.items):
        if isinstance(item, For):
            for dot in item.body.items:
                if isinstance(dot, Dot) and _can_begin(dot):
                    dot.begins_sums = _move_clearing(region, item, dot)
        for inner in regions_of(item):
            _begin_in(inner)


def _can_begin(dot: Dot) -> bool:
    is_whole = is_float(dot.op.c.type) or not (dot.needed_rows or dot.needed_columns)
    return dot.steps > 1 and (is_whole or not may_divide(dot.op))


def _move_clearing(region: Region, loop: For, dot: Dot) -> bool:
    """Whether the sums begin with 0; what clears them is done right before the loop then, unless that runs."""
    number = dot.op.c.index - 1
    if not is_positive_zero(loop.op.iter_args[number]):
        return False
    for nest in [item for item in region.items[: region.items.index(loop)] if isinstance(item, Nest)]:
        for root in nest.roots:
            if isinstance(root, Keep) and root.op is loop.op and root.place is loop.homes[number]:
                nest.roots.remove(root)
                region.items.insert(region.items.index(loop), Nest(nest.shape, [root], unless_runs=loop))
                return True
    return False
