"""Loads and stores of lanes that are a few elements apart: whole vectors, whose lanes are shuffled.

    tl.load(x + 2 * i)      x:  0 1 2 3 4 5 6 7     vectors of 0 1 2 3 and 3 4 5 6; of both 0 2 4 6
    tl.load(x + i // 2)     x:  0 1                 a vector of 0 1; of it 0 0 1 1
    ... of which lanes 0 and 1 are on               vectors of 0 - 2 - and - - - -, masked
    tl.store(x + 2 * i, y)                          vectors of y0 - y1 - and y2 - y3 -, masked

Instructions that gather take a load for each lane all the same. The vectors that are loaded begin at the first element
and end at the last: between them no page is touched that no lane is on, since a page has several lanes. What is between
lanes is not stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest

from deuteron.backend.cpu.plan.vectors.known_distances import starts_of_vectors
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, element, poison, vector, vector_const, width, zero

# Vectors under a mask, and lanes that share an element, each of which shuffles the mask: up to these that takes less
# than an instruction that gathers sixteen words.
_MASKED_VECTORS = 4
_MASKED_SHARERS = 4


def load_strided(b: Builder, first: Value, type: str, lanes: int, stride: int) -> Value:
    """Elements from an address on, `stride` elements apart."""
    return load_apart(b, first, type, range(0, lanes * stride, stride))


def takes_masks(numbers: Sequence[int]) -> bool:
    """Whether `load_apart` under a mask takes less than an access for each lane."""
    sharers = max(Counter(numbers).values())
    return sharers <= _MASKED_SHARERS and len(starts_of_vectors(numbers, len(numbers))) <= _MASKED_VECTORS


def load_apart(b: Builder, first: Value, type: str, numbers: Sequence[int], mask: Value | None = None) -> Value:
    """Elements that are so many after the one at an address, one for each lane; 0 where a mask has it off."""
    lanes, last = len(numbers), max(numbers)
    found = poison(vector(type, lanes))
    for start in starts_of_vectors(numbers, lanes):
        size = min(lanes, last + 1 - min(numbers))
        begin = min(start, last + 1 - size)
        places = [number - begin for number in numbers]
        part = _load(b, vector(type, size), _at(b, first, type, begin), places, mask)
        if size == 1:
            return b.splat(part, lanes)
        if size < lanes:
            found = b.shufflevector(part, None, places)
            break
        found = b.shufflevector(
            found, part, [lanes + place if 0 <= place < lanes else lane for lane, place in enumerate(places)]
        )
    return found if mask is None else b.select(mask, found, zero(found.type))


def _load(b: Builder, type: str, address: Value, places: Sequence[int], mask: Value | None) -> Value:
    """A vector; of one under a mask what lanes that are on take, each of a place."""
    num_bytes = byte_width(element(type))
    if mask is None:
        return b.load(type, address, num_bytes)
    are_on = zero(vector("i1", width(type)))
    takers = [[lane for lane, taken in enumerate(places) if taken == place] for place in range(width(type))]
    for lanes in zip_longest(*takers, fillvalue=len(places)):
        are_on = b.or_(are_on, b.shufflevector(mask, zero(mask.type), lanes))
    return b.masked_load(type, address, num_bytes, are_on)


def store_strided(b: Builder, elements: Value, first: Value, stride: int) -> None:
    """The inverse, by masked stores, whose lanes after the last element are off."""
    type, lanes = element(elements.type), width(elements.type)
    for start in range(0, stride * lanes, lanes):
        places = range(start, start + lanes)
        spread = b.shufflevector(elements, None, [-1 if place % stride else place // stride for place in places])
        mask = vector_const("i1", [place % stride == 0 for place in places])
        b.masked_store(spread, _at(b, first, type, start), byte_width(type), mask)


def _at(b: Builder, first: Value, type: str, number: int) -> Value:
    return b.gep(type, first, const("i64", number)) if number else first
