"""Takes tiles out of memory again that only the nest that computes them reads, at the same index.

x = load(p); y = x * x + x      x was kept for its two readers; all became one nest, so that x stays in a register
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import Nest, regions_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan


def nests_of(region: Region) -> Iterator[Nest]:
    """All nests of a region and of those inside it."""
    for item in region.items:
        if isinstance(item, Nest):
            yield item
        for inner in regions_of(item):
            yield from nests_of(inner)


def drop_empty_nests(region: Region) -> None:
    """Remove the nests of a region, and of those inside it, that have lost all their roots."""
    region.items = [item for item in region.items if not isinstance(item, Nest) or item.roots]
    for item in region.items:
        for inner in regions_of(item):
            drop_empty_nests(inner)


def release_private_tiles(plan: Plan) -> None:
    """Drop each tile from what is kept that need not be."""
    readers = readers_of(plan)
    for nest in nests_of(plan.body):
        in_step = {(nest, identity_index(nest.shape))}
        for root in list(nest.roots):
            value = root.value if isinstance(root, Keep) else None
            if value is None or value in plan.storage.required:
                continue
            if readers.get(value, set()) <= in_step:
                nest.roots.remove(root)
                plan.storage.kept.remove(value)
                del plan.places[value]
    plan.reader.forget()
    drop_empty_nests(plan.body)


def readers_of(plan: Plan) -> dict[SSAValue, set]:
    """For each kept tile the nests that read it, with the index."""
    readers: dict[SSAValue, set] = {}
    for nest in nests_of(plan.body):
        for root in nest.roots:
            for value, indices in plan.reader.reads(root).tiles.items():
                readers.setdefault(value, set()).update((nest, index) for index in indices)
    return readers
