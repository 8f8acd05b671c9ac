"""The loads of a loop that addresses and masks of others are made of, and how many iterations ahead they run.

    for k in range(n):
        page = tl.load(table + k)                 3 iterations ahead, into registers
        x = tl.load(p + page * 64 + i)            2 iterations ahead, copied into a ring of 3 slots
        acc = tl.dot(x, y, acc)

    loads = AddressLoads(loop, lambda load, distance: None)
    loads.obstacle(x, 2)                          None
    loads.with_sources({x: 2})                    {x: 2, page: 3}

What a load needs is loaded an iteration before it, so that it has arrived; chains may have any length. A load whose
address comes from what it loaded in an earlier iteration, as of a list, stays. It says nothing of registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.ir.tt.descriptor import MakeTensorDescriptorOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.passes.gpu.pipelining.run_ahead import Ahead
from deuteron.passes.gpu.rings.buffered_loads import Load


class AddressLoads:
    """`own_obstacle(load, distance)` says what keeps a load itself, not its address, from running that far ahead."""

    def __init__(self, loop: scf.ForOp, own_obstacle: Callable[[LoadOp, int], str | None]):
        self._loop, self._own_obstacle = loop, own_obstacle
        self._slices: dict[Load, Ahead] = {}
        self._known: dict[tuple[Load, int], str | None] = {}

    def obstacle(self, load: Load, distance: int) -> str | None:
        """What keeps the address and the mask of a load from being known that many iterations ahead, in words."""
        for source in self._sources(load):
            obstacle = self._own_obstacle(source, distance + 1) or self._of_source(source, distance + 1, (load,))
            if obstacle is not None:
                return f"its address depends on a load that stays: {obstacle}"
        return self._slice(load).obstacle

    def _of_source(self, load: Load, distance: int, users: tuple[Load, ...]) -> str | None:
        """The same of a load that others need, which `users` are, down to the first that was asked for. Found once: two
        loads may need two others each, and so on.
        """
        if load in users:
            return "it loads what its next address depends on"
        if (load, distance) not in self._known:
            self._known[load, distance] = self._find(load, distance, (*users, load))
        return self._known[load, distance]

    def _find(self, load: Load, distance: int, users: tuple[Load, ...]) -> str | None:
        obstacles = (
            self._own_obstacle(source, distance + 1) or self._of_source(source, distance + 1, users)
            for source in self._sources(load)
        )
        return next(filter(None, obstacles), None) or self._slice(load).obstacle

    def sources(self, load: Load) -> set[LoadOp]:
        """All loads that a load depends on, directly or not."""
        return set(self.with_sources({load: 0})) - {load}

    def with_sources(self, distances: Mapping[Load, int]) -> dict[Load, int]:
        """Loads that run ahead, and by how many iterations, with those that they depend on; the first wins that needs
        a load soonest. In the order in which they are waited for: those by fewer iterations first, of these as the loop
        has them.
        """
        found: dict[Load, int] = {}
        pending = list(distances.items())
        while pending:
            load, distance = pending.pop()
            if distance > found.get(load, -1):
                found[load] = distance
                pending += [(source, distance + 1) for source in self._sources(load)]
        in_loop = [op for op in self._loop.body.block.ops if op in found]
        return {load: found[load] for load in sorted(in_loop, key=found.__getitem__)}

    def _sources(self, load: Load) -> list[LoadOp]:
        return self._slice(load).loads

    def _slice(self, load: Load) -> Ahead:
        if load not in self._slices:
            self._slices[load] = Ahead(self._loop, _needs(load))
        return self._slices[load]


def _needs(load: Load) -> list[SSAValue]:
    """What a load needs to know in advance; the map of a descriptor is the kernel's."""
    if isinstance(load, LoadOp):
        return list(load.operands)
    made = load.desc.owner
    return [*load.indices, *(made.operands if isinstance(made, MakeTensorDescriptorOp) else ())]
