"""Tiles of addresses that may have one in common, beside all addresses that there are."""

import random
from math import gcd

import pytest

from deuteron.analysis.aliasing.overlap import WRAP, Overlap, _of_distance


@pytest.mark.parametrize("seed", range(4))
def test_distances(seed):
    """Two tiles, from 0 and from `number` plus any multiple of `period` on; each a sum of strides along two axes."""
    rng = random.Random(seed)
    for _ in range(400):
        extents = [rng.choice((1, 2, 4)) for _ in range(2)]
        first, second = ([rng.randint(-6, 6) for _ in range(2)] for _ in range(2))
        second = first if rng.random() < 0.5 else second
        number, period = rng.randint(-20, 20), rng.choice((0, 0, 1, 3, 8, 16, 24))
        one, other = (_addresses(strides, extents) for strides in (first, second))
        (first_low, first_high), (second_low, second_high) = ((min(a), max(a)) for a in (one, other))
        found = _of_distance(number, period, first_low - second_high, first_high - second_low, first == second)
        step = gcd(period, WRAP)  # of offsets that wrap around
        distances = [number + n * step for n in (range(-50, 51) if period else (-1, 0, 1))]
        meeting = [d for d in distances if set(one) & {d + address for address in other}]
        if found is Overlap.APART:
            assert not meeting
        elif found is Overlap.SAME:
            assert set(meeting) <= {0} and first == second


def _addresses(strides, extents):
    return [i * strides[0] + j * strides[1] for i in range(extents[0]) for j in range(extents[1])]
