"""Tiles of addresses that may have one in common, beside all addresses that there are."""

import random
from math import gcd

import pytest

from deuteron.analysis.addresses.polynomial import Polynomial, coordinate
from deuteron.analysis.addresses.tile_address import TileAddress
from deuteron.analysis.aliasing.overlap import WRAP, Overlap, _of_distance
from deuteron.ir.types import PointerType, f32, tile


@pytest.mark.parametrize("seed", range(4))
def test_distances(seed):
    """Two tiles, from 0 and from `number` plus any multiple of `period` on; each a sum of strides along two axes."""
    rng = random.Random(seed)
    for _ in range(400):
        extents = [rng.choice((1, 2, 4)) for _ in range(2)]
        first, second = ([rng.choice((rng.randint(-6, 6), 8, 16)) for _ in range(2)] for _ in range(2))
        second = first if rng.random() < 0.5 else second
        number, period = rng.randint(-20, 20), rng.choice((0, 0, 1, 3, 8, 16, 24))
        one, other = (_addresses(strides, extents) for strides in (first, second))
        found = _of_distance(number, period, _tile(first, extents), _tile(second, extents))
        step = gcd(period, WRAP)  # of offsets that wrap around
        distances = [number + n * step for n in (range(-50, 51) if period else (-1, 0, 1))]
        meeting = [d for d in distances if set(one) & {d + address for address in other}]
        if found is Overlap.APART:
            assert not meeting
        elif found is Overlap.SAME:
            assert set(meeting) <= {0} and first == second


def _addresses(strides, extents):
    return [i * strides[0] + j * strides[1] for i in range(extents[0]) for j in range(extents[1])]


def _tile(strides, extents):
    coordinates = (Polynomial.of(coordinate(axis)) * Polynomial.constant(step) for axis, step in enumerate(strides))
    return TileAddress.of_polynomial(tile(PointerType(f32), extents), sum(coordinates, Polynomial({})))


@pytest.mark.parametrize(
    "strides, number, found",
    [
        ((128, 1), 64, Overlap.APART),  # the second halves of rows
        ((128, 1), 63, Overlap.MAY),
        ((128, 1), 64 + 128, Overlap.APART),
        ((3, 384), 1, Overlap.APART),  # every third element
        ((3, 384), 3, Overlap.MAY),
        ((128, 1), 0, Overlap.SAME),
    ],
)
def test_elements_of_rows(strides, number, found):
    halves = _tile(strides, (32, 64))
    assert _of_distance(number, 0, halves, halves) is found
