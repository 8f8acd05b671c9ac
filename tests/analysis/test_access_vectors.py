"""How many registers one access takes, and whether a copy into shared memory can be done."""

import pytest

from deuteron.analysis.addresses.access_vectors import access_vectors, copy_vectors, leaders
from deuteron.analysis.axis.axis_info import AxisInfo
from deuteron.layout.distributed import blocked
from deuteron.layout.linear import LinearLayout
from deuteron.layout.shared import mma_shared, row_major

SHAPE = (32, 64)
LAYOUT = blocked(SHAPE, (1, 8), (4, 8), (4, 1), (1, 0))
POINTER = AxisInfo((1, 64), (16, 16), (1, 1), step=2)


def mask(constancy: int) -> AxisInfo:
    return AxisInfo((1, 1), (1, 1), (1, constancy))


def test_rows_of_eight_halves():
    groups = access_vectors(LAYOUT, POINTER, None, 2)
    assert groups == [list(range(8)), list(range(8, 16))]


@pytest.mark.parametrize(("pointer", "constancy", "size"), [
    (POINTER, 64, 8),
    (POINTER, 4, 4),
    (POINTER, 1, 1),
    (POINTER._replace(divisibility=(4, 4)), 64, 2),
    (POINTER._replace(contiguity=(1, 2)), 64, 2),
])  # fmt: skip
def test_alignment_contiguity_and_mask_limit_it(pointer, constancy, size):
    assert {len(group) for group in access_vectors(LAYOUT, pointer, mask(constancy), 2)} == {size}


@pytest.mark.parametrize("shared", [row_major(SHAPE), mma_shared(SHAPE, 1, 2)])
def test_a_copy_takes_what_a_load_takes(shared):
    assert copy_vectors(LAYOUT, shared, POINTER, None, 2, (4, 8, 16)) == access_vectors(LAYOUT, POINTER, None, 2)


@pytest.mark.parametrize("constancy", [1, 4])
def test_a_copy_has_at_least_four_bytes(constancy):
    groups = copy_vectors(LAYOUT, row_major(SHAPE), POINTER, mask(constancy), 2, (4, 8, 16))
    assert groups is None if constancy == 1 else {len(group) for group in groups} == {4}


def test_neighbours_in_memory_must_be_neighbours_in_shared_memory():
    columns = row_major(SHAPE, (0, 1))
    assert copy_vectors(LAYOUT, columns, POINTER, None, 2, (4, 8, 16)) is None
    words = POINTER._replace(step=4)
    assert {len(group) for group in copy_vectors(LAYOUT, columns, words, None, 4, (4, 8, 16))} == {1}


def test_what_several_threads_hold_is_copied_and_what_a_thread_holds_twice_is_not():
    """Of several threads one copies."""
    replicated = blocked(SHAPE, (1, 8), (4, 8), (16, 1), (1, 0))
    assert copy_vectors(replicated, row_major(SHAPE), POINTER, None, 2, (4, 8, 16)) == [list(range(8))]
    twice = replicated * LinearLayout.zeros(2, "register", "dim0")
    assert copy_vectors(twice, row_major(SHAPE), POINTER, None, 2, (4, 8, 16)) is None


def test_registers_at_known_distances():
    """A thread has 8 columns of two rows: the first of each row, and how many bytes the others are from it."""
    assert leaders(LAYOUT, POINTER) == [(r & 8, 2 * (r & 7)) for r in range(16)]
    assert leaders(LAYOUT, POINTER._replace(contiguity=(1, 4)))[:8] == [(r & 4, 2 * (r & 3)) for r in range(8)]
    assert leaders(LAYOUT, POINTER._replace(contiguity=(1, 1))) == [(r, 0) for r in range(16)]


def test_distances_where_lanes_are_between():
    layout = blocked((32, 64), (1, 1), (1, 32), (4, 1), (1, 0))
    assert leaders(layout, POINTER)[:2] == [(0, 0), (0, 64)]


def test_no_distance_where_a_lane_moves_along_too():
    bases = {"register": [(1,), (4,)], "lane": [(2,), (5,), (8,), (16,), (32,)], "warp": []}
    layout = LinearLayout.make(bases, {"dim0": 64})
    assert leaders(layout, AxisInfo((64,), (16,), (1,))) == [(0, 0), (1, 0), (2, 0), (3, 0)]


@pytest.mark.parametrize("registers", [[(0, 1), (0, 2), (8, 2)], [(0, 1), (0, 2), (0, 2)]])
def test_neighbours_of_which_something_else_decides_too_are_none(registers):
    lanes, warps = [(0, 4 << bit) for bit in range(4)] + [(1, 0)], [(2, 0), (4, 0)]
    layout = LinearLayout.make(
        {"register": [*registers, (8, 0), (16, 0)], "lane": lanes, "warp": warps, "block": []}, {"dim0": 32, "dim1": 64}
    )
    assert {len(group) for group in access_vectors(layout, POINTER, None, 2)} == {2}
