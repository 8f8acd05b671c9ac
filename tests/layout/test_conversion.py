"""Conversions between layouts, by every route, executed on NumPy registers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout.strategies import layouts, shapes

from deuteron.layout import f2
from deuteron.layout.conversion import (
    Exchange,
    RegisterRoute,
    SharedRoute,
    ShuffleRoute,
    Turns,
    plan,
    plan_registers,
    plan_shared,
    plan_shuffles,
)
from deuteron.layout.distributed import default_blocked, mma_v2_accumulator, mma_v2_operand
from deuteron.layout.linear import BLOCK, LANE, REGISTER, WARP, LinearLayout
from deuteron.layout.shared_access import Offsets, conflicts, find_matrices


def grid(layout):
    """Index arrays of every (warp, lane, register) of a layout."""
    sizes = (layout.in_size(WARP), layout.in_size(LANE), layout.in_size(REGISTER))
    return np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")


def held(layout):
    """What each (warp, lane, register) holds: the row-major index of its element."""
    warp, lane, register = grid(layout)
    coordinates = layout(register=register, lane=lane, warp=warp)
    index = 0
    for coordinate, size in zip(coordinates, layout.shape, strict=True):
        index = index * size + coordinate
    return np.broadcast_to(index, warp.shape)


def xor_of(bits, value):
    result = np.zeros_like(value)
    for index, bit in enumerate(bits):
        result ^= (value >> index & 1) * bit
    return result


def run(route, src, dst):
    values = held(src)
    warp, lane, register = grid(dst)
    if isinstance(route, RegisterRoute):
        return values[warp, lane, np.array(route.sources)[register]]
    if isinstance(route, ShuffleRoute):
        source_register = xor_of([r for r, _ in route.register_bits], register)
        source_register ^= xor_of([r for r, _ in route.lane_bits], lane)
        source_lane = xor_of([x for _, x in route.register_bits], register) ^ xor_of(
            [x for _, x in route.lane_bits], lane
        )
        for offered, lane_bit in route.offers:
            source_register = source_register ^ np.where(source_lane & lane_bit, offered, 0)
        return values[warp, source_lane, source_register]
    inverse = route.scratch.right_inverse()
    memory = np.full(1 << route.scratch.total_in_bits, -1)
    src_warp, src_lane, src_register = grid(src)
    (offset,) = src.compose(inverse)(register=src_register, lane=src_lane, warp=src_warp)
    memory[np.broadcast_to(offset, values.shape)] = values
    (offset,) = dst.compose(inverse)(register=register, lane=lane, warp=warp)
    return memory[np.broadcast_to(offset, warp.shape)]


@given(st.data())
@settings(max_examples=150)
def test_every_route_is_exact(data):
    shape = data.draw(shapes(max_bits=9))
    num_warps = data.draw(st.sampled_from([1, 2, 4]))
    src, dst = data.draw(layouts(shape, num_warps)), data.draw(layouts(shape, num_warps))
    element_bits = data.draw(st.sampled_from([8, 16, 32, 64]))
    routes = [plan(src, dst, element_bits), plan_registers(src, dst), plan_shuffles(src, dst)]
    for route in [*filter(None, routes), plan_shared(src, dst, element_bits)]:
        np.testing.assert_array_equal(run(route, src, dst), held(dst))


def test_equal_layouts_only_rename_registers():
    layout = default_blocked([32, 64], 4, vector=4)
    assert plan(layout, layout, 32) == RegisterRoute(tuple(range(layout.in_size(REGISTER))))


def test_accumulator_to_operand_of_the_next_product_needs_no_movement():
    """The chain of two products in attention: for 16 bits the accumulator is already laid out as operand A."""
    accumulator, operand = mma_v2_accumulator([64, 64], [4, 1]), mma_v2_operand([64, 64], [4, 1], 0, 16)
    assert isinstance(plan(accumulator, operand, 16), RegisterRoute)


def test_lanes_of_one_warp_shuffle():
    src = default_blocked([1, 32], 1)
    dst = src.map_columns(dict(src.outs), lambda basis: (0, {1: 2, 2: 1}.get(basis[1], basis[1])))
    route = plan(src, dst, 32)
    assert isinstance(route, ShuffleRoute)
    assert route.num_shuffles == 1


def test_a_register_and_a_lane_change_places():
    """Of eight registers each lane keeps four."""
    src = LinearLayout.make({REGISTER: [(1,), (2,), (4,)], LANE: [(8,), (16,)], WARP: [], BLOCK: []}, {"i": 32})
    dst = LinearLayout.make({REGISTER: [(1,), (16,), (4,)], LANE: [(8,), (2,)], WARP: [], BLOCK: []}, {"i": 32})
    route = plan(src, dst, 32)
    assert isinstance(route, ShuffleRoute)
    assert (route.num_shuffles, route.exchange) == (4, Exchange(register=2, lane=2, pair=2))


def test_lanes_that_choose_a_register_take_turns():
    """Of the sums of a dot, two columns in each lane, to its operand of 32 bits, whose columns are four apart."""
    accumulator, operand = mma_v2_accumulator([64, 64], [4, 1]), mma_v2_operand([64, 64], [4, 1], 0, 32)
    route = plan(accumulator, operand, 32)
    assert isinstance(route, ShuffleRoute)
    assert route.turns == Turns(register=1, pair=2, choosing=1, asked=2, lanes=(2, 1, 4, 8, 16))
    assert route.num_shuffles == route.num_offered == operand.in_size(REGISTER)


def test_lanes_that_hold_the_same_offer_different_registers():
    """A column of 16 sums, two in each of eight lanes and their replicas, becomes a row of four in a thread."""
    column = LinearLayout.make({REGISTER: [(8,)], LANE: [(0,), (0,), (1,), (2,), (4,)], WARP: [], BLOCK: []}, {"i": 16})
    row = LinearLayout.make(
        {REGISTER: [(1,), (2,)], LANE: [(4,), (8,), (0,), (0,), (0,)], WARP: [], BLOCK: []}, {"i": 16}
    )
    route = plan(column, row, 32)
    assert isinstance(route, ShuffleRoute)
    assert (route.num_shuffles, route.num_offered, route.offers) == (4, 1, ((1, 1),))


def test_a_transpose_through_shared_memory_has_no_bank_conflicts():
    src, dst = default_blocked([64, 64], 4, [1, 0]), default_blocked([64, 64], 4, [0, 1])
    route = plan(src, dst, 32)
    assert isinstance(route, SharedRoute)
    for offsets in (Offsets.of(side, route.scratch, 4) for side in (src, dst)):
        assert conflicts(offsets.lanes, offsets.vector_bytes) == 0


def test_vectors_are_what_both_sides_hold():
    src, dst = default_blocked([64, 64], 4, vector=8), mma_v2_accumulator([64, 64], [2, 2])
    route = plan_shared(src, dst, 32)
    assert route.vector_elements == 4  # two columns and, 32 rows apart, two more


def by_matrices(route, src, dst, element_bytes=2) -> list[bool]:
    """Whether stmatrix stores what the source has, and ldmatrix loads what the destination is to have."""
    return [find_matrices(Offsets.of(side, route.scratch, element_bytes)) is not None for side in (src, dst)]


def test_rows_of_matrices_are_vectors_of_the_other_side():
    """What of a row is in a lane is a word: stmatrix and ldmatrix move it."""
    rows, matrix = default_blocked([64, 64], 4, vector=8), mma_v2_accumulator([64, 64], [2, 2])
    stored, loaded = plan_shared(matrix, rows, 16), plan_shared(rows, matrix, 16)
    assert by_matrices(stored, matrix, rows) == [True, False]
    assert by_matrices(loaded, rows, matrix) == [False, True]
    for route in (stored, loaded):
        assert route.vector_elements == 8
        assert conflicts(Offsets.of(rows, route.scratch, 2).lanes, 16) == 0
        starts = matrix.compose(route.scratch.right_inverse()).columns(LANE)[2:]
        assert f2.rank([start >> 3 & 7 for start in starts]) == 3  # eight times four banks


def test_sums_that_are_an_operand_transposed_are_stored_and_loaded_as_matrices():
    """Of an attention's backward pass: the weights are transposed between two dots."""
    sums = mma_v2_accumulator([64, 64], [4, 1])
    src = sums.map_columns(dict(sums.outs), lambda basis: basis[::-1])
    dst = mma_v2_operand([64, 64], [4, 1], 0, 16)
    route = plan(src, dst, 16)
    assert isinstance(route, SharedRoute)
    stored, loaded = (find_matrices(Offsets.of(side, route.scratch, 2)) for side in (src, dst))
    assert stored is not None and not stored.transposed and conflicts(stored.rows, 16) == 0
    assert loaded is not None and loaded.transposed and conflicts(loaded.rows, 16) == 0
    np.testing.assert_array_equal(run(route, src, dst), held(dst))
    assert by_matrices(plan_shared(src, dst, 32), src, dst, 4) == [False, False]  # they have 16 bits


@pytest.mark.parametrize("vector", [1, 8])
@pytest.mark.parametrize("shape", [[32, 32], [64, 64], [128, 32]])
def test_what_threads_hold_of_rows_is_stored_in_vectors_and_loaded_as_columns_of_matrices(shape, vector):
    """A transposition of 16-bit elements: 8 lanes want what a thread has, and each gets two elements in a word."""
    src, dst = default_blocked(shape, 4, [1, 0], vector), default_blocked(shape, 4, [0, 1], vector)
    route = plan(src, dst, 16)
    assert isinstance(route, SharedRoute) and by_matrices(route, src, dst) == [False, True]
    assert Offsets.of(src, route.scratch, 2).vector_bytes == 16
    assert conflicts(Offsets.of(src, route.scratch, 2).lanes, 16) == 0
    loaded = find_matrices(Offsets.of(dst, route.scratch, 2))
    assert loaded is not None and loaded.transposed and conflicts(loaded.rows, 16) == 0
    np.testing.assert_array_equal(run(route, src, dst), held(dst))
    assert not any(by_matrices(plan_shared(src, dst, 8 * size), src, dst, size)[1] for size in (1, 4))


@given(st.lists(st.integers(0, 255), max_size=8), st.lists(st.integers(0, 255), max_size=8))
def test_intersection_of_spans(left, right):
    common = f2.intersection(left, right)
    assert all(vector in f2.Span(left) and vector in f2.Span(right) for vector in common)
    assert len(common) == f2.rank(left) + f2.rank(right) - f2.rank([*left, *right])
