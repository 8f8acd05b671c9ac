"""When each slot of the scratch memory holds something that is still needed.

Items are numbered in order. An item at time t reads at 2t and writes at 2t + 1; what it reads at other indices than it
writes is needed until 2t + 2, and what it writes out of step (a reduction, a product) begins at 2t:

    t = 3   Nest: Keep(e), reads x at the same index        x is needed up to 7, e from 7 on: they may share memory
    t = 4   Dot: reads a, b                                 the result begins at 8, a and b end at 10: they may not
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.items import Dot, For, If, Item, Nest, Transpose, While, regions_of
from deuteron.backend.cpu.plan.region import Region
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.slots import Place, Slot
from deuteron.backend.cpu.plan.tiles.views import viewed_source

Range = tuple[int, int]
FOREVER = (0, 1 << 60)  # what is found by the next program


def number_items(region: Region, time: int = 0) -> int:
    """Set the times of all items; returns the next free one."""
    for item in region.items:
        item.time = time
        time += 1
        for inner in regions_of(item):
            time = number_items(inner, time) + 1
            inner.end = time - 1
        if regions_of(item):
            item.end = time
            time += 1
    return time


@dataclass(frozen=True)
class _Event:
    """A read of a value, or a write of a slot, inside of some loops."""

    time: int
    loops: tuple[Item, ...]


class Liveness:
    """Computes `ranges`: for each slot the times, from and up to, at which its contents are needed."""

    def __init__(self, plan: Plan):
        self.ranges: dict[Slot, list[Range]] = {}
        self._plan = plan
        self._writes: dict[Slot, list[_Event]] = {}
        self._reads: dict[SSAValue, list[_Event]] = {}
        self._homes: list[tuple[Item, tuple[Item, ...]]] = []
        self._walk(plan.body, ())
        home_slots = self._add_homes()
        for value, place in plan.places.items():
            if place.slot not in home_slots and place.slot in self._writes:
                self._add_range(place.slot, self._writes[place.slot], self._reads.get(value, []))

    def _walk(self, region: Region, loops: tuple[Item, ...]) -> None:
        for item in region.items:
            if isinstance(item, Nest):
                self._walk_nest(item, loops)
            elif isinstance(item, Dot | Transpose):
                self._walk_matrices(item, loops)
            elif regions_of(item):
                self._homes.append((item, loops))
            inner_loops = (*loops, item) if isinstance(item, For | While) else loops
            for inner in regions_of(item):
                self._walk(inner, inner_loops)

    def _walk_nest(self, nest: Nest, loops: tuple[Item, ...]) -> None:
        in_step = {identity_index(nest.shape)}
        for root in nest.roots:
            for value, indices in self._plan.reader.reads(root).tiles.items():
                until = 2 * nest.time + (1 if indices == in_step else 2)
                self._reads.setdefault(value, []).append(_Event(until, loops))
            if isinstance(root, Keep):
                self._write(root.place, _Event(2 * nest.time + 1, loops))
            else:
                for value in root.produced():
                    if value in self._plan.places:
                        self._write(self._plan.places[value], _Event(2 * nest.time, loops))

    def _walk_matrices(self, item: Dot | Transpose, loops: tuple[Item, ...]) -> None:
        matrices = (item.op.a, item.op.b, item.op.result) if isinstance(item, Dot) else (item.op.src,)
        for matrix in matrices:
            self._reads.setdefault(viewed_source(matrix), []).append(_Event(2 * item.time + 2, loops))
        self._write(item.result, _Event(2 * item.time, loops))
        if isinstance(item, Dot):
            self._walk_operands(item, loops)
            self._walk_rows(item, loops)

    def _walk_rows(self, item: Dot, loops: tuple[Item, ...]) -> None:
        """What rows of a product read that compute B."""
        roots = item.row_nest.roots if item.row_nest else ()
        for value in [value for root in roots for value in self._plan.reader.reads(root).tiles]:
            self._reads.setdefault(value, []).append(_Event(2 * item.time + 2, loops))

    def _walk_operands(self, item: Dot, loops: tuple[Item, ...]) -> None:
        """What a product packs, and operands that are kept of several steps of a loop."""
        start, end = 2 * item.time, 2 * item.time + 2
        if item.steps > 1:
            start, end = 2 * loops[-1].time, 2 * loops[-1].end + 2
        for place in (item.packed, item.a if item.copies_a else None, item.b):
            if place is not None and (place is item.packed or place.slot.layout is not None):
                self._add(place.slot, *(FOREVER if place.slot.reuse else (start, end)))

    def _write(self, place: Place, event: _Event) -> None:
        self._writes.setdefault(place.slot, []).append(event)

    def _add_range(self, slot: Slot, writes: list[_Event], reads: list[_Event]) -> None:
        first = min(writes, key=lambda event: event.time)
        ends = [_end(event, first.loops) for event in reads]
        self._add(slot, first.time, max([first.time + 1, *ends]))

    def _add(self, slot: Slot, start: int, end: int) -> None:
        self.ranges.setdefault(slot, []).append((start, end))

    def _add_homes(self) -> set[Slot]:
        """The ranges of slots that control flow carries tiles in."""
        slots = set()
        for item, loops in self._homes:
            homes = [*item.homes.values(), *(item.result_homes.values() if isinstance(item, While) else ())]
            slots |= {home.slot for home in homes}
            for number, home in item.homes.items():
                if isinstance(item, For):
                    self._add_for_home(item, number, home.slot, loops)
                elif isinstance(item, If):
                    self._add_if_home(item, number, home.slot, loops)
            if isinstance(item, While):
                self._add_while_homes(item, loops)
        return slots

    def _add_for_home(self, item: For, number: int, slot: Slot, loops: tuple[Item, ...]) -> None:
        before = [event for event in self._writes[slot] if event.time < 2 * item.time]
        inside = [event for event in self._writes[slot] if event.time > 2 * item.time]
        argument = self._reads.get(item.op.body.block.args[number + 1], [])
        last_read = max((_end(event, (*loops, item)) for event in argument), default=2 * item.time)
        self._add(slot, min(event.time for event in before), max(2 * item.time + 1, last_read))
        self._add(slot, min(event.time for event in inside), 2 * item.end)
        self._add(slot, 2 * item.end, self._last_read(item, number, loops))

    def _add_if_home(self, item: If, number: int, slot: Slot, loops: tuple[Item, ...]) -> None:
        for branch in item.branches:
            end = 2 * branch.end + 2
            inside = [e.time for e in self._writes[slot] if e.time <= end]
            inside = [time for time in inside if not branch.items or time >= 2 * branch.items[0].time]
            self._add(slot, min(inside), end)
        self._add(slot, 2 * item.end, self._last_read(item, number, loops))

    def _add_while_homes(self, item: While, loops: tuple[Item, ...]) -> None:
        for home in item.homes.values():
            start = min(event.time for event in self._writes[home.slot])
            self._add(home.slot, start, 2 * item.end)
        for number, home in item.result_homes.items():
            self._add(home.slot, 2 * item.time, self._last_read(item, number, loops))

    def _last_read(self, item: Item, number: int, loops: tuple[Item, ...]) -> int:
        reads = self._reads.get(item.op.results[number], [])
        return max((_end(event, loops) for event in reads), default=2 * item.end + 1)


def _end(event: _Event, loops: tuple[Item, ...]) -> int:
    """The end of a read: of the outermost loop around it, for a value made before that loop."""
    inner = event.loops[len(loops) :]
    return 2 * inner[0].end if inner else event.time
