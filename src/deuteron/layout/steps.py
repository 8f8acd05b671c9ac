"""Whether the elements of a tile in memory are all at different places, by their steps along its dimensions.

    are_injective([(16, 100), (64, 1)])       True: 16 rows, 100 elements apart, of 64 neighbours
    are_injective([(16, 32), (64, 1)])        False: rows overlap
    are_injective([(-16, n), WRAP])           True: 16 rows of n elements are at most 2**32 - 1, also where n is 0

Offsets of 32 bits that are 2**32 apart are one: with WRAP among the steps all others reach less far than that.
Machine code (backend/launcher/apart.py) and C (aot/runtime/checked.c) do the same.
"""

from __future__ import annotations

from collections.abc import Sequence

WRAP = 1 << 30, 1 << 32


def are_injective(steps: Sequence[tuple[int, int]]) -> bool:
    """Of extents and steps, which may be negative: whether each step is longer than all that shorter ones reach.

    That is enough, and where there are gaps between elements more than is needed. Where -n is the extent, so is what n
    steps reach, of which no more is asked.
    """
    covered = 0
    for step, extent in sorted((abs(step), extent) for extent, step in steps if extent > 1 or extent < 0):
        if extent > 0 and step <= covered:
            return False
        covered += step * (extent - 1 if extent > 0 else -extent)
    return True
