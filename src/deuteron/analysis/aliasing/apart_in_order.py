"""Which arguments have to be apart for a GPU's threads not to wait for each other: what one stores, another may load.

    %x = tt.load %a + i            InOrder().note(...)        of each two accesses without a barrier in between
    tt.store %b + i, %x            .take_apart()                   a, b: disjoint, or the same: each thread stores what
                                                                   it has loaded itself
    tt.store %c + 255 - i, %x                                      a, c: disjoint

Through one argument threads wait (global_hazards.py). Through two nobody knows until the kernel is launched: it relies
on them being apart (apart.py), and for arrays that overlap it is compiled with barriers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from deuteron.analysis.aliasing.apart import Tiles, take_apart
from deuteron.analysis.aliasing.points_to import Targets
from deuteron.analysis.aliasing.same_offsets import Alike

# Of two arguments, so that kernels with hundreds of accesses take no seconds: more have to be disjoint. Not measured.
MOST_COMPARED = 256


class Same(NamedTuple):
    """What has to hold of numbers that the kernel is given where two arguments are the same (`Pair` of apart.py)."""

    equal: Alike = frozenset()
    tiles: Tiles = frozenset()


class InOrder:
    """What each two arguments have to be: disjoint, or, where it is known, the same."""

    def __init__(self) -> None:
        self._same: dict[frozenset[Targets], Same | None] = {}
        self._compared: dict[frozenset[Targets], int] = {}

    def note(self, first: Targets, second: Targets, if_same: Callable[[], Same | None]) -> None:
        """`if_same`: what has to hold for nobody to wait where both are one array; None: somebody has to."""
        if not first or not second:
            return  # through the null pointer nobody touches anything
        pair = frozenset((first, second))
        known = self._same.setdefault(pair, Same())
        if known is None:
            return
        self._compared[pair] = self._compared.get(pair, 0) + 1
        found = if_same() if self._compared[pair] <= MOST_COMPARED else None
        self._same[pair] = None if found is None else Same(known.equal | found.equal, known.tiles | found.tiles)

    def take_apart(self) -> None:
        for (first, second), same in self._same.items():
            take_apart(first, second, same is not None, *(same or Same()))
