"""Finds products of a loop of which one row may be needed, and whose B is computed: weights of few bits, say.

    for k in range(0, K, 64):                           a tile of 16 rows, of which M = 1 is stored
        w = tl.load(...)                                a nest that makes floats of B, and packs them
        acc = tl.dot(a, (w & 15).to(a.dtype), acc)      if M is 1: a nest that multiplies them as they are made

Each element of B is used once, so that packing it takes longer than the product. Where B is no more than loaded, that
is done for all iterations at once, and for more rows, from memory (`few_rows.py`). Two rows of what is computed take as
long as two times one, and blocks less.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from deuteron.backend.cpu.plan.items import Dot, For, Item, Nest, Transpose, regions_of
from deuteron.backend.cpu.plan.products.few_rows import are_sizes_known
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep, ReduceRoot, RowRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.ir.types import element_type_of, f32, shape_of


def find_single_rows(plan: Plan) -> None:
    """Give such products the nest of a row, and have B kept only where more rows are needed."""
    for loop in _loops(plan.body):
        for item in [item for item in loop.body.items if isinstance(item, Dot)]:
            nest = _nest_of_b(loop.body, item) if _is_candidate(plan, loop, item) else None
            if nest is not None:
                item.row_nest = Nest(nest.shape, [RowRoot(item.op, (item.op.b,), 0, item.a)])
                nest.unless_computed = item


def _loops(region: Region) -> list[For]:
    inner = [found for item in region.items for own in regions_of(item) for found in _loops(own)]
    return [item for item in region.items if isinstance(item, For)] + inner


def _is_candidate(plan: Plan, loop: For, item: Dot) -> bool:
    """Whether it is a product of floats, some of whose rows may not be needed, as is known before the loop."""
    if item.few_rows is not None or not item.needed_rows or len(shape_of(item.op.result.type)) != 2:
        return False
    excess = item.product.excess if item.product is not None else 0
    return element_type_of(item.op.c.type) == f32 and not excess and are_sizes_known(plan, loop, item)


def _nest_of_b(region: Region, item: Dot) -> Nest | None:
    """The nest that computes B, for this product alone, which may do so right before the product as well."""
    if item.b_is_transposed or len(list(item.op.b.uses)) != 1:
        return None
    before = region.items[: region.items.index(item)]
    at = next((at for at, other in enumerate(before) if _keeps_only(other, item.op.b)), None)
    return before[at] if at is not None and all(map(_is_without_effects, before[at:])) else None


def _keeps_only(item: Item, tile: SSAValue) -> bool:
    return isinstance(item, Nest) and [root.computed for root in item.roots] == [tile]


def _is_without_effects(item: Item) -> bool:
    """Whether loads may be done after an item as well as before it."""
    if isinstance(item, Nest):
        return not item.is_scalar and all(isinstance(root, Keep | ReduceRoot) for root in item.roots)
    return isinstance(item, Dot | Transpose)
