"""Chooses along which dimension a kept tile's neighbours are neighbours in memory: mostly the last one, not always.

    for ...: total += tl.load(p + x[:, None] + 512 * r[None, :])        total (64, 4)
    tl.sum(total, 1)

The load is contiguous along x, so the loop's body is vectorised along x. A row-major `total` would then be read and
written lane by lane; its dimension 0 becomes the innermost one.

Each nest votes, with the axis that it would be vectorised along, for the dimension of each tile that runs along it; one
in a loop counts more. At first only accesses count that are what they are, then also tiles whose order is chosen. Tiles
that something reads as row-major memory have no choice: operands of products, what a reshape or a split shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from deuteron.backend.cpu.plan.items import Dot, For, Item, Nest, Transpose, While, regions_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep, MapRoot
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.slots import Place, Slot
from deuteron.backend.cpu.plan.vectors.accesses import Access, accesses_of
from deuteron.backend.cpu.plan.vectors.axes import axes_to_vectorise, cost_along

_LOOP_WEIGHT = 16  # iterations that a loop is taken to have; not measured
_LANES = 8  # enough to tell axes apart; the target is not known here

Votes = dict[Slot, Counter[int]]


def choose_orders(plan: Plan) -> None:
    """Set `innermost` of the slots whose tiles are better off not row-major."""
    undecided = _free_slots(plan)
    nests = [(nest, weight, accesses_of(plan, nest)) for nest, weight in _weighted_nests(plan.body, 1)]
    while undecided:
        votes: Votes = {}
        for nest, weight, accesses in nests:
            _vote(votes, nest, weight, accesses, undecided)
        if not votes:
            return
        for slot, counts in votes.items():
            shape = undecided.pop(slot)
            innermost = max(counts, key=lambda axis: (counts[axis], axis))
            slot.innermost = innermost if any(extent > 1 for extent in shape[innermost + 1 :]) else None
        nests = [(nest, weight, _with_orders(plan, nest, accesses, votes)) for nest, weight, accesses in nests]


def _with_orders(plan: Plan, nest: Nest, accesses: list[Access], decided: Votes) -> list[Access]:
    """The accesses of a nest, anew where one is of a slot that has another order now."""
    slots = {access.place.slot for access in accesses if access.place is not None}
    is_new = any(slot.innermost is not None for slot in slots & decided.keys())
    return accesses_of(plan, nest) if is_new else accesses


def _vote(votes: Votes, nest: Nest, weight: int, accesses: list[Access], undecided: dict[Slot, tuple]) -> None:
    candidates = axes_to_vectorise(nest)
    free = [access for access in accesses if access.place is not None and access.place.slot in undecided]
    fixed = [access for access in accesses if access not in free]
    costs = {axis: cost_along(nest, fixed, axis, _LANES) for axis in candidates}
    if not free or len(set(costs.values())) < 2:
        return
    best = min(reversed(candidates), key=costs.__getitem__)
    for access in free:
        if best in access.index:
            counts = votes.setdefault(access.place.slot, Counter())
            counts[access.index.index(best)] += weight * prod(nest.shape)


def _free_slots(plan: Plan) -> dict[Slot, tuple[int, ...]]:
    """The slots whose tiles are accessed by their index only, with the shape of their tiles."""
    places: dict[Slot, set[Place]] = {}
    bound: set[Slot] = set()
    for place in plan.places.values():
        places.setdefault(place.slot, set()).add(place)
    for item in _items(plan.body):
        if isinstance(item, Nest):
            for root in item.roots:
                if isinstance(root, Keep):
                    places.setdefault(root.place.slot, set()).add(root.place)
                if isinstance(root, MapRoot):
                    bound |= {
                        plan.places[value].slot for value in (*root.sources, *root.produced()) if value in plan.places
                    }
        elif isinstance(item, Dot | Transpose):
            bound |= {place.slot for place in _matrices(item)}
    return {
        slot: next(iter(own)).shape
        for slot, own in places.items()
        if len(own) == 1 and slot not in bound and all(place.is_whole for place in own)
    }


def _matrices(item: Dot | Transpose) -> tuple[Place, ...]:
    return (item.a, item.b, item.result) if isinstance(item, Dot) else (item.source, item.result)


def _items(region: Region) -> Iterator[Item]:
    for item in region.items:
        yield item
        for inner in regions_of(item):
            yield from _items(inner)


def _weighted_nests(region: Region, weight: int) -> Iterator[tuple[Nest, int]]:
    """All nests, with how often each runs, about."""
    for item in region.items:
        if isinstance(item, Nest):
            yield item, weight
        inner_weight = weight * _LOOP_WEIGHT if isinstance(item, For | While) else weight
        for inner in regions_of(item):
            yield from _weighted_nests(inner, inner_weight)
