"""Slices of a distributed tile: a thread's registers of a part of a dimension, each thread's of the same part.

register = [[0, 1], [4, 0], [8, 0]], lane = [[1, 0], [2, 0], [0, 2], ...]          a tile of 16x64

sliceable_bits(layout, 0)      (2, 1): register bits 2 and 1 are the highest bits of the row, and nothing else is
slice_layout(layout, 0, 4)     register = [[0, 1]], ...: a tile of 4x64
slice_bits(layout, 0, 4)       (1, 2): bits of a register's number that are the number of its slice, the lowest first
"""

from __future__ import annotations

from functools import lru_cache

from deuteron.layout.linear import REGISTER, LinearLayout, log2


@lru_cache(maxsize=1024)
def sliceable_bits(layout: LinearLayout, axis: int) -> tuple[int, ...]:
    """The register bits that are the highest bits of a coordinate by themselves, the highest first."""
    found: list[int] = []
    for step in reversed(range(log2(layout.shape[axis]))):
        unit = tuple(1 << step if a == axis else 0 for a in range(len(layout.shape)))
        moving = [(name, base) for name, bases in layout.bases for base in bases if base[axis] >> step & 1]
        if moving != [(REGISTER, unit)]:
            break
        found.append(layout.of(REGISTER).index(unit))
    return tuple(found)


def slice_bits(layout: LinearLayout, axis: int, count: int) -> tuple[int, ...]:
    """The register bits that are the number of one of `count` slices along a dimension, the lowest first."""
    return sliceable_bits(layout, axis)[: log2(count)][::-1]


def slice_layout(layout: LinearLayout, axis: int, count: int) -> LinearLayout:
    """The layout of one of `count` slices along a dimension."""
    sliced = slice_bits(layout, axis, count)
    bases = {
        name: [base for bit, base in enumerate(vectors) if name != REGISTER or bit not in sliced]
        for name, vectors in layout.bases
    }
    outs = {name: size // count if a == axis else size for a, (name, size) in enumerate(layout.outs)}
    return LinearLayout.make(bases, outs)
