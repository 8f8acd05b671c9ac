"""Which registers of a tile one load from memory fills: each address is loaded once, in whatever order they are.

    8 fp16 a thread, at p + i            one access of 8 elements        0 1 2 3 4 5 6 7
    p + i // 2                           one of 4, for two each          0 0 1 1 2 2 3 3
    p + (i ^ 1)                          one of 8                        1 0 3 2 5 4 7 6
    p + i % 2 * 100 + i // 2             two of 4                        0 - 1 - 2 - 3 -     - 0 - 1 - 2 - 3

What is not the address of an element is not loaded. Where elements have masks of their own, or other values for where
these are off, they are loaded by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import NamedTuple

from deuteron.analysis.addresses.access_vectors import MAX_BYTES, access_vectors, grouped, register_run
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.distances import Distances
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import byte_width_of, pointee_of
from deuteron.layout.linear import REGISTER, LinearLayout

MOST_NEIGHBOURS = 16


class Access(NamedTuple):
    """From the address of register `first` on; each register that it fills with the element that it gets."""

    first: int
    elements: Mapping[int, int]


def load_accesses(load: LoadOp, layout: LinearLayout, info: AxisInfoAnalysis) -> list[Access]:
    """The accesses of a load of a tile in a layout."""
    mask = info.of_mask(load.mask)
    size = byte_width_of(pointee_of(load.ptr.type))
    vectors = access_vectors(layout, info.of(load.ptr), mask, size)
    plain = [Access(group[0], {register: index for index, register in enumerate(group)}) for group in vectors]
    if len(vectors[0]) * size == MAX_BYTES or load.is_volatile.value.data:
        return plain
    by_distance = (_by_distance(load, layout, axis, info) for axis in range(len(layout.shape)))
    return min(plain, *by_distance, key=lambda accesses: len(accesses) or len(plain) + 1)


def num_accesses(known: Distances, size: int) -> int:
    """For neighbours that a thread holds, of `size` bytes each."""
    return len(_vectors(known, size))


def _by_distance(load: LoadOp, layout: LinearLayout, axis: int, info: AxisInfoAnalysis) -> list[Access]:
    """Of neighbours along a dimension; none where it is not known how far they are apart."""
    bits, guards = register_run(layout, axis), [one for one in (load.mask, load.other) if one is not None]
    count = gcd(1 << len(bits), MOST_NEIGHBOURS, *(info.of(guard).constancy[axis] for guard in guards))
    known = info.distances(load.ptr, axis, count) if count > 1 else None
    if known is None:
        return []
    groups = grouped(layout.in_size(REGISTER), bits[: count.bit_length() - 1])
    vectors = _vectors(known, byte_width_of(pointee_of(load.ptr.type)))
    return [_access(group, known.distances, places) for group in groups for places in vectors]


def _access(group: Sequence[int], distances: Sequence[int], places: range) -> Access:
    first = group[distances.index(places[0])]
    taken = zip(group, distances, strict=True)
    return Access(first, {register: places.index(distance) for register, distance in taken if distance in places})


def _vectors(known: Distances, size: int) -> list[range]:
    """Aligned ranges of addresses that are all needed, the widest ones first."""
    missing, found = set(known.distances), []
    while missing:
        begin, count = min(missing), MAX_BYTES // size
        while count > 1 and not _is_vector(begin, count, size, missing, known):
            count //= 2
        found.append(range(begin, begin + count * size, size))
        missing.difference_update(found[-1])
    return found


def _is_vector(begin: int, count: int, size: int, missing: set[int], known: Distances) -> bool:
    places = range(begin, begin + count * size, size)
    return known.alignment(begin) % (count * size) == 0 and missing.issuperset(places)
