"""Puts each root into a loop nest: into an earlier one over the same shape where nothing stands against it.

    x = load(p)          Nest((1024,), [Keep(x), Reduce(max)])
    m = max(x)           <- joins: it reads x at the same index only
    e = exp(x - m)       Nest((1024,), [Keep(e), Reduce(sum)])      <- cannot: m is known only after the nest
    s = sum(e)

Loads never move across writes of the same array. Within a nest a store follows the loads at its index; so a nest that
loads or stores an array does not take a store to other elements of the same array.

What is loaded to be the B of products has a nest of its own: it is packed (`products/pack_in_place.py`), along the
dimension that it is read along, which may be another one than A's, whose tile has the same shape if both are squares.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from deuteron.backend.cpu.plan import effects
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import Dot, Item, Nest, Transpose
from deuteron.backend.cpu.plan.reads import Reader, Reads
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep, LaneRoot, ReduceRoot, Root, StoreRoot
from deuteron.ir.tt.dot import DotOp

# Each access of a nest is compared with all of its stores: 300 loads, each with a store to another array, took 19 s.
MOST_STORES = 32


class Fuser:
    """Places roots among the items of a region."""

    def __init__(self, reader: Reader):
        self._reader = reader
        self._places = effects.Places()

    def place(self, region: Region, root: Root) -> None:
        """Add a root to the last nest that can take it, or to a new one at the end."""
        reads = self._reader.reads(root)
        for item in reversed(region.items):
            if isinstance(item, Nest) and self._can_join(item, root, reads):
                item.roots.append(root)
                return
            if not self._can_pass(item, root, reads):
                break
        region.items.append(Nest(root.shape, [root]))

    def _can_join(self, nest: Nest, root: Root, reads: Reads) -> bool:
        if nest.shape != root.shape or nest.is_exclusive or isinstance(root, LaneRoot):
            return False
        if nest.is_scalar or root.body is not None:
            return False
        if any(self._is_loaded_for_product(one) for one in (root, *nest.roots)):
            return False
        if any(_is_pinned(other) != _is_pinned(root) for other in nest.roots):
            return False
        if isinstance(root, ReduceRoot) and nest.reduced_axis not in (None, root.axis):
            return False
        return self._reads_in_step(nest, reads) and self._keeps_memory_order(nest, root, reads)

    def _is_loaded_for_product(self, root: Root) -> bool:
        """Whether it is what products, and they alone, have as their second operand."""
        if not isinstance(root, Keep) or root.value is None or not self._reader.reads(root).loads:
            return False
        uses = list(root.value.uses)
        return all(isinstance(use.operation, DotOp) for use in uses) and any(use.index == 1 for use in uses)

    def _reads_in_step(self, nest: Nest, reads: Reads) -> bool:
        """Whether what the root reads of the nest is there at the same index."""
        identity = {identity_index(nest.shape)}
        for other in nest.roots:
            for value in other.produced():
                in_step = isinstance(other, Keep) and reads.tiles.get(value) == identity
                if value in reads.values and not in_step:
                    return False
        return True

    def _keeps_memory_order(self, nest: Nest, root: Root, reads: Reads) -> bool:
        """Stores stay after loads and other stores of the same array, unless they are to the very same elements, and
        loads after stores of the same array.
        """
        stores = [other for other in nest.roots if isinstance(other, StoreRoot)]
        if len(stores) >= MOST_STORES:
            return False
        if any(self._places.may_change(store.op, load) for store in stores for load, _ in reads.loads):
            return False
        if not isinstance(root, StoreRoot):
            return True
        identity = identity_index(nest.shape)
        accessed = [access for other in nest.roots for access in self._reader.reads(other).loads]
        accessed += [(store.op, identity) for store in stores]
        return not any(self._places.may_overlap(op.ptr, root.op.ptr, index == identity) for op, index in accessed)

    def _can_pass(self, item: Item, root: Root, reads: Reads) -> bool:
        """Whether the root may be computed before the item instead of after it."""
        if _is_pinned(root) or isinstance(root, LaneRoot) or produced_by(item) & reads.values:
            return False
        reads_memory, writes_memory = self._effects_of(item)
        if writes_memory and (reads.loads or isinstance(root, StoreRoot)):
            return False
        return not (reads_memory and isinstance(root, StoreRoot))

    def _effects_of(self, item: Item) -> tuple[bool, bool]:
        if isinstance(item, Dot | Transpose):
            return False, False
        if isinstance(item, Nest):
            loads = any(self._reader.reads(root).loads for root in item.roots)
            stores = any(isinstance(root, StoreRoot) or effects.writes(root.op) for root in item.roots)
            return loads or stores, stores
        return effects.reads(item.op), effects.writes(item.op)


def produced_by(item: Item) -> set[SSAValue]:
    if isinstance(item, Nest):
        return {value for root in item.roots for value in root.produced()}
    return set(item.op.results)


def _is_pinned(root: Root) -> bool:
    return isinstance(root, Keep) and root.is_pinned
