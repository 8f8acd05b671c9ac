"""Lets tiles share memory, and gives every slot its offset in the scratch memory.

    acc = tl.dot(p, v, acc * alpha)     acc * alpha is computed where acc is, and the product added there: no copies
    e = tl.exp(x - m)                   written where x was, as x is not read again

First copies are made unnecessary (a loop's values, accumulators), then in-place updates are found, then offsets are
assigned first fit, so that what is never needed at the same time shares memory.
"""

from __future__ import annotations

from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.slots import Place, Slot
from deuteron.backend.cpu.plan.tiles.liveness import Liveness, Range, number_items
from deuteron.backend.cpu.plan.tiles.private import drop_empty_nests, nests_of

ALIGNMENT = 64


def assign_buffers(plan: Plan) -> int:
    """Coalesce slots, drop copies, set offsets; returns the bytes of scratch memory."""
    number_items(plan.body)
    ranges = Liveness(plan).ranges
    for nest in nests_of(plan.body):
        _drop_copies(plan, nest, ranges)
    for nest in nests_of(plan.body):
        _update_in_place(plan, nest, ranges)
    drop_empty_nests(plan.body)
    return _assign_offsets(ranges)


def _drop_copies(plan: Plan, nest: Nest, ranges: dict[Slot, list[Range]]) -> None:
    """Where a root only copies a kept tile, let the two share memory instead."""
    for root in list(nest.roots):
        source = root.sources[0]
        if not isinstance(root, Keep) or root.value is not None or source not in plan.places:
            continue
        place = plan.places[source]
        if _is_alike(place, root.place) and _merge(place.slot, root.place.slot, ranges):
            nest.roots.remove(root)


def _update_in_place(plan: Plan, nest: Nest, ranges: dict[Slot, list[Range]]) -> None:
    """Let a tile be written over one that the nest is the last to read."""
    in_step = {identity_index(nest.shape)}
    for root in nest.roots:
        if not isinstance(root, Keep) or not root.place.is_whole:
            continue
        for other in nest.roots:
            for value, indices in plan.reader.reads(other).tiles.items():
                place = plan.places.get(value)
                if place is not None and indices == in_step and _is_alike(place, root.place):
                    _merge(root.place.slot, place.slot, ranges)


def _is_alike(first: Place, second: Place) -> bool:
    """Whether an element is at the same address of both slots."""
    return first.is_whole and second.is_whole and first.strides == second.strides


def _merge(first: Slot, second: Slot, ranges: dict[Slot, list[Range]]) -> bool:
    """Let two slots share memory, unless both are needed at some time."""
    first, second = first.representative, second.representative
    if first is second:
        return True
    if (first.type, first.count) != (second.type, second.count) or _overlap(ranges[first], ranges[second]):
        return False
    second.merged = first
    ranges[first] = ranges[first] + ranges.pop(second)
    return True


def _overlap(some: list[Range], others: list[Range]) -> bool:
    return any(start < other_end and other_start < end for start, end in some for other_start, other_end in others)


def _assign_offsets(ranges: dict[Slot, list[Range]]) -> int:
    """First fit, large slots first. Items are taken as wholes here: sharing within one is for `_merge` to find."""
    whole = {slot: [(start // 2 * 2, -(-end // 2) * 2) for start, end in times] for slot, times in ranges.items()}
    placed: list[Slot] = []
    for slot in sorted(whole, key=lambda slot: -slot.num_bytes):
        others = [other for other in placed if _overlap(whole[slot], whole[other])]
        slot.offset = 0
        for other in sorted(others, key=lambda other: other.offset):
            if slot.offset + slot.num_bytes <= other.offset:
                break
            slot.offset = max(slot.offset, _align(other.offset + other.num_bytes))
        placed.append(slot)
    return max((_align(slot.offset + slot.num_bytes) for slot in placed), default=0)


def _align(num_bytes: int) -> int:
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT
