"""The algebra of linear layouts: evaluation, products, composition, inverses, shape changes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout.strategies import layouts, shapes

from deuteron.layout.distributed import (
    blocked,
    default_blocked,
    mma_v2_accumulator,
    mma_v2_operand,
    scatter_registers,
    scattered_registers,
    slice_axis,
    split_axis,
)
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout
from deuteron.layout.shared import row_major, swizzled


def owners(layout):
    """For each element, the set of (register, lane, warp) that hold it."""
    found = {}
    for register in range(layout.in_size(REGISTER)):
        for lane in range(layout.in_size(LANE)):
            for warp in range(layout.in_size(WARP)):
                found.setdefault(layout(register=register, lane=lane, warp=warp), set()).add((register, lane, warp))
    return found


def test_the_worked_example_of_the_module():
    layout = LinearLayout.make(
        {"register": [(0, 1)], "lane": [(0, 2), (0, 4)], "warp": [(1, 0)]}, {"dim0": 2, "dim1": 8}
    )
    assert layout(register=1, lane=3, warp=1) == (1, 7)
    assert layout(register=np.arange(2), lane=1)[1].tolist() == [2, 3]


def test_the_worked_example_of_blocked():
    layout = blocked([4, 8], [1, 2], [2, 4], [2, 1], order=[1, 0])
    assert layout(register=1, lane=5, warp=1) == (3, 3)


@given(st.data())
def test_every_element_has_an_owner(data):
    shape = data.draw(shapes(max_bits=8))
    layout = data.draw(layouts(shape, data.draw(st.sampled_from([1, 2, 4]))))
    found = owners(layout)
    assert set(found) == set(np.ndindex(*shape))
    assert len({len(places) for places in found.values()}) == 1


@given(st.data())
def test_free_bits_leave_one_owner(data):
    shape = data.draw(shapes(max_bits=8))
    layout = data.draw(layouts(shape, 4))
    free = layout.free_bits()
    kept = [
        sum(not (r & free[REGISTER] or lane & free[LANE] or w & free[WARP]) for r, lane, w in places)
        for places in owners(layout).values()
    ]
    assert set(kept) == {1}


@given(st.data())
def test_right_inverse_is_an_inverse(data):
    shape = data.draw(shapes())
    layout = data.draw(layouts(shape, 4))
    round_trip = layout.right_inverse().compose(layout)
    for index in range(0, int(np.prod(shape)), 7):
        coordinates = layout.unflatten(index)
        assert round_trip(**dict(zip(layout.out_names, coordinates, strict=True))) == coordinates


@given(st.data())
def test_shape_changes_commute_with_evaluation(data):
    shape = data.draw(shapes(max_rank=2, max_bits=8).filter(lambda s: len(s) == 2))
    layout = data.draw(layouts(shape, 2))
    tile = np.arange(np.prod(shape)).reshape(shape)
    place = {"register": layout.in_size(REGISTER) - 1, "lane": 21, "warp": 1}
    held = tile[layout(**place)]
    assert tile.T[layout.transpose([1, 0])(**place)] == held
    flat = layout.reshape([tile.size])
    assert tile.reshape(-1)[flat(**place)] == held
    assert tile[:, None, :][layout.with_axis(1)(**place)] == held


def test_slices_drop_replicated_registers():
    layout = blocked([16, 16], [2, 4], [8, 4], [1, 1], order=[1, 0])
    sliced = slice_axis(layout, 1)
    assert sliced.shape == (16,)
    assert sliced.in_size(REGISTER) == 2
    assert sliced.free_bits()[LANE] == 0b00011


@pytest.mark.parametrize("stride", [1, 8, 64, 256])
def test_halves_are_held_once(stride):
    """Pairs that are in two registers, lanes or warps; a thread holds eight elements, and four of each half."""
    layout = blocked([1024], [8], [32], [4], order=[0]).reshape([1024 // stride // 2, 2, stride])
    pairs = layout.transpose([0, 2, 1])
    half = split_axis(pairs, 2)
    assert half.in_size(REGISTER) == 4 and not any(half.free_bits().values())


def test_halves_of_a_tile_of_which_a_thread_holds_one_element_are_held_twice():
    half = split_axis(blocked([32, 2], [1, 1], [16, 2], [2, 1], order=[1, 0]), 1)
    assert half.in_size(REGISTER) == 1 and half.free_bits()[LANE] == 0b00001


def test_mma_v2_matches_the_ptx_isa():
    """PTX ISA, mma.m16n8k16: accumulator c2 of lane 5 is row 9, column 2; a4 of lane 5 row 1, column 10; b2 row 10."""
    accumulator = mma_v2_accumulator([16, 8], [1, 1])
    assert accumulator(register=2, lane=5) == (9, 2)
    assert mma_v2_operand([16, 16], [1, 1], 0, 16)(register=4, lane=5) == (1, 10)
    assert mma_v2_operand([16, 8], [1, 1], 1, 16)(register=2, lane=5) == (10, 1)


def test_swizzled_matches_its_drawing():
    layout = swizzled([8, 8], [1, 0], vec=2, per_phase=1, max_phase=4)
    assert [layout(offset=8 + column)[1] for column in range(8)] == [2, 3, 0, 1, 6, 7, 4, 5]
    assert row_major([4, 2]).of("offset") == ((0, 1), (1, 0), (2, 0))


def test_lanes_cover_the_fastest_dimension_first():
    layout = default_blocked([64, 64], 4, vector=4)
    assert layout.of(REGISTER)[:2] == ((0, 1), (0, 2))
    assert layout.of(LANE)[:4] == ((0, 4), (0, 8), (0, 16), (0, 32))


@pytest.mark.parametrize("bases", [{"lane": [(0, 8)]}, {"lane": [(1,)]}])
def test_bad_bases_are_refused(bases):
    with pytest.raises(ValueError, match="basis vector"):
        LinearLayout.make(bases, {"dim0": 4, "dim1": 8})


def test_registers_scattered_over_lanes():
    """A warp's 16 rows of 32: each thread has a part of each, and after a reduction each row is two lanes'."""
    whole = slice_axis(blocked([16, 32], [16, 1], [1, 32], [1, 1], [1, 0]), 1)
    scattered = scatter_registers(whole, [0, 1, 2, 3, 4])
    assert scattered.of(REGISTER) == ()
    assert scattered.of(LANE) == ((1,), (2,), (4,), (8,), (0,))
    assert scattered.is_surjective
    assert scattered_registers(whole, scattered) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert scattered_registers(whole, whole) == {}


def test_other_layouts_are_not_scattered():
    whole = slice_axis(blocked([16, 32], [16, 1], [1, 32], [1, 1], [1, 0]), 1)
    other = blocked([16], [1], [32], [1], [0]).map_columns({"dim0": 16}, lambda basis: (basis[0] ^ (basis[0] >> 1),))
    assert scattered_registers(whole, other) is None
