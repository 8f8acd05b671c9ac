"""How much shared memory ops need, and conversions in parts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from layout.strategies import layouts

from deuteron.analysis.shared_memory.shared_conversion import plan_conversion
from deuteron.layout.distributed import axis_bits, blocked, default_blocked, mma_v2_accumulator
from deuteron.layout.linear import BLOCK, LANE, OFFSET, REGISTER, WARP, LinearLayout


def test_bits_along_an_axis_are_those_that_hold_no_replicas():
    layout = blocked((8, 16), (1, 4), (2, 16), (4, 1), (1, 0))
    assert axis_bits(layout, 1, REGISTER) == [0, 1]
    assert axis_bits(layout, 1, LANE) == [0, 1]  # the lanes beyond 16 columns hold replicas
    assert axis_bits(layout, 0, LANE) == [4]
    assert axis_bits(layout, 0, WARP) == [0, 1]


def test_a_bit_that_moves_along_two_axes_is_refused():
    layout = LinearLayout.make({REGISTER: [], LANE: [(1, 1), (0, 1)], WARP: [], BLOCK: []}, {"dim0": 2, "dim1": 2})
    with pytest.raises(ValueError, match="moves along several dimensions"):
        axis_bits(layout, 0, LANE)


def test_a_large_conversion_is_split():
    src, dst = mma_v2_accumulator((128, 128), [2, 2]), default_blocked((128, 128), 4, vector=4)
    plan = plan_conversion(src, dst, 32)
    assert plan.num_parts == 2 and plan.num_elements * 4 == 32 * 1024
    assert plan_conversion(src, dst, 16).num_parts == 1


@st.composite
def large_pairs(draw):
    shape = (1 << draw(st.integers(6, 8)), 1 << draw(st.integers(6, 8)))
    return tuple(draw(layouts(shape, 4)) for _ in range(2))


@settings(max_examples=30, deadline=None)
@given(large_pairs())
def test_parts_have_every_register_once_and_fit_together(pair):
    src, dst = pair
    plan = plan_conversion(src, dst, 64)
    for layout, registers in ((src, plan.src_registers), (dst, plan.dst_registers)):
        found = [register for part in range(plan.num_parts) for register in registers(part)]
        assert sorted(found) == list(range(layout.in_size(REGISTER)))
    for part in range(plan.num_parts):
        held = [
            {
                layout.flatten_basis(layout(register=r, lane=lane, warp=warp))
                for r in registers(part)
                for lane in (0, 1, 31)
                for warp in range(4)
            }
            for layout, registers in ((src, plan.src_registers), (dst, plan.dst_registers))
        ]
        mask = sum(1 << bit for bit in _part_bits(src, plan.src_bits))
        assert len({index & mask for index in held[0] | held[1]}) == 1
    assert plan.scratch.in_size(OFFSET) == plan.num_elements


def _part_bits(layout, register_bits):
    return [layout.columns(REGISTER)[bit].bit_length() - 1 for bit in register_bits]
