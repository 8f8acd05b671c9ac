"""Indices of a plan: at which element of a tile a nest computes, as the numbers of its dimensions.

Nest((64, 128)):    x                   (0, 1)          its own element
                    row[:, None]        (0, None)       of extent 1 along the second dimension
                    gather of pairs     (0, Exchanged(1, 1))    element j ^ 1
"""

from __future__ import annotations

from dataclasses import dataclass

Index = tuple  # an entry for each dimension: what runs along it, or None for extent 1


@dataclass(frozen=True)
class Exchanged:
    """An entry of an index: the places that differ from those of another entry in the bits of a mask."""

    entry: object
    mask: int


def exchanged(index: Index, shape: tuple[int, ...], mask: int) -> Index:
    """The index of the elements whose row-major positions differ in a mask."""
    entries = []
    for entry, extent in zip(reversed(index), reversed(shape), strict=True):
        entries.append(Exchanged(entry, mask % extent) if mask % extent else entry)
        mask //= extent
    return tuple(reversed(entries))


def running(index: Index) -> Index:
    """What runs along each dimension, whichever of its places are meant."""
    return tuple(running((entry.entry,))[0] if isinstance(entry, Exchanged) else entry for entry in index)


def identity_index(shape: tuple[int, ...]) -> Index:
    """The index, in a plan, of a tile in a nest over its own shape: the numbers of the dimensions."""
    return tuple(axis if extent > 1 else None for axis, extent in enumerate(shape))
