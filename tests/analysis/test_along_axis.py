"""The order in which registers, lanes and warps take part in a scan."""

import pytest

from deuteron.analysis.along_axis import Phase, num_exchanged, scan_phases
from deuteron.layout.distributed import blocked, in_columns
from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, LinearLayout

R, L, W = REGISTER, LANE, WARP


def along(registers, lanes, warps, size):
    bases = {REGISTER: registers, LANE: lanes, WARP: warps, BLOCK: []}
    return LinearLayout.make({name: [(bit,) for bit in bits] for name, bits in bases.items()}, {"dim0": size})


@pytest.mark.parametrize(
    ("layout", "axis", "phases", "exchanged"),
    [
        (blocked([64, 4], [4, 1], [8, 4], [2, 1], [0, 1]), 0, [(R, 0, 1), (L, 0, 1, 2), (W, 0)], 8),
        (blocked([64, 4], [4, 1], [8, 4], [2, 1], [0, 1]), 1, [(L, 3, 4)], 0),
        (along([1, 64], [2, 4, 8, 16, 32], [128], 256), 0, [(R, 0), (L, 0, 1, 2, 3, 4), (R, 1), (W, 0)], 2),
        (along([1, 128], [2, 4, 8, 16, 32], [64], 256), 0, [(R, 0), (L, 0, 1, 2, 3, 4), (W, 0), (R, 1)], 4),
        (along([], [16, 8, 4, 2, 1], [], 32), 0, [(L, 4), (L, 3), (L, 2), (L, 1), (L, 0)], 0),
        (along([0], [1, 2, 4, 8, 0], [16, 32, 64, 128], 256), 0, [(L, 0, 1, 2, 3), (W, 0, 1, 2), (W, 3)], 16),
    ],
)
def test_phases(layout, axis, phases, exchanged):
    assert scan_phases(layout, axis) == [Phase(name, tuple(bits)) for name, *bits in phases]
    assert num_exchanged(layout, axis) == exchanged


def test_columns_have_few_threads():
    layout = in_columns([32, 64], 4, axis=0, fast=1, vector=2)
    assert scan_phases(layout, 0) == [Phase(REGISTER, (1, 2, 3)), Phase(WARP, (0, 1))]
    assert layout.is_surjective and not any(layout.free_bits().values())
