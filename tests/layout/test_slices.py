"""Slices of layouts: each element of a tile is in one slice, in the threads in which it is in the tile."""

from __future__ import annotations

import pytest

from deuteron.layout.distributed import blocked, mma_v2_accumulator, slice_axis
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2
from deuteron.layout.slices import slice_bits, slice_layout, sliceable_bits

LAYOUTS = [
    (blocked([64, 64], [1, 4], [4, 8], [4, 1], [1, 0]), 0, 4),
    (blocked([64, 64], [1, 4], [4, 8], [4, 1], [1, 0]), 1, 2),
    (mma_v2_accumulator((64, 64), (1, 1)), 0, 4),
    (mma_v2_accumulator((64, 64), (1, 1)), 1, 8),
    (slice_axis(blocked([64, 64], [1, 4], [4, 8], [1, 1], [1, 0]), 1), 0, 16),
]


def place_in_slice(layout: LinearLayout, axis: int, count: int, register: int) -> tuple[int, int]:
    """The slice in which a register is, and its number there."""
    sliced = slice_bits(layout, axis, count)
    kept = [bit for bit in range(layout.in_bits(REGISTER)) if bit not in sliced]
    part, place = (sum((register >> bit & 1) << at for at, bit in enumerate(bits)) for bits in (sliced, kept))
    return part, place


@pytest.mark.parametrize(("layout", "axis", "count"), LAYOUTS)
def test_every_register_is_in_its_slice(layout: LinearLayout, axis: int, count: int):
    part, size = slice_layout(layout, axis, count), layout.shape[axis] // count
    assert log2(count) <= len(sliceable_bits(layout, axis))
    assert part.shape == tuple(size if a == axis else extent for a, extent in enumerate(layout.shape))
    places = [place_in_slice(layout, axis, count, register) for register in range(layout.in_size(REGISTER))]
    assert sorted(places) == [(s, r) for s in range(count) for r in range(part.in_size(REGISTER))]
    for lane, warp in [(0, 0), (5, 0), (layout.in_size(LANE) - 1, layout.in_size(WARP) - 1)]:
        for register, (number, place) in enumerate(places):
            expected = list(part(register=place, lane=lane, warp=warp))
            expected[axis] += size * number
            assert layout(register=register, lane=lane, warp=warp) == tuple(expected)


def test_what_lanes_decide_is_not_sliced():
    layout = blocked([8, 4], [1, 4], [8, 1], [1, 1], [1, 0])
    assert sliceable_bits(layout, 0) == ()
    assert len(sliceable_bits(layout, 1)) == 2
