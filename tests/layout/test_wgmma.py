"""The layouts of wgmma: fragments as the PTX manual gives them, operands, descriptors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from layout.test_conversion import grid

from deuteron.layout.conversion import RegisterRoute, plan
from deuteron.layout.distributed import HARDWARE, mma_v2_accumulator
from deuteron.layout.linear import WARP
from deuteron.layout.shared import mma_shared, row_major
from deuteron.layout.wgmma import (
    SharedMatrix,
    instruction_n,
    is_mma_v3_accumulator,
    mma_v3_accumulator,
    mma_v3_operand,
    shared_matrix,
)


@pytest.mark.parametrize("n", [8, 16, 64, 256])
def test_the_fragment_of_one_instruction(n):
    layout = mma_v3_accumulator([64, n], [4, 1])
    warp, lane, register = grid(layout)
    row, column = layout(register=register, lane=lane, warp=warp)
    np.testing.assert_array_equal(row, 16 * warp + lane // 4 + 8 * (register // 2 % 2))
    np.testing.assert_array_equal(column, 8 * (register // 4) + 2 * (lane % 4) + register % 2)


@st.composite
def accumulators(draw):
    rows, columns = draw(st.sampled_from([(4, 1), (8, 1), (4, 2), (16, 1), (8, 2), (4, 4)]))
    m = 16 * rows << draw(st.integers(0, 2))
    return (m, 8 * columns << draw(st.integers(0, 6))), (rows, columns)


@given(accumulators())
def test_every_element_is_held_once(drawn):
    shape, warps = drawn
    layout = mma_v3_accumulator(shape, warps)
    assert layout.in_names == HARDWARE and layout.is_surjective and layout.is_injective
    assert is_mma_v3_accumulator(layout)
    assert instruction_n(layout) == min(256, shape[1] // warps[1])


def test_warpgroups_share_the_rows_then_the_columns():
    assert mma_v3_accumulator([128, 64], [8, 1]).of(WARP) == ((16, 0), (32, 0), (64, 0))
    assert mma_v3_accumulator([64, 64], [4, 2]).of(WARP) == ((16, 0), (32, 0), (0, 32))


@pytest.mark.parametrize(
    "layout",
    [
        mma_v2_accumulator([64, 64], [2, 2]),
        mma_v2_accumulator([128, 64], [4, 2]),
        mma_v2_accumulator([32, 64], [4, 1]),
        mma_v2_accumulator([64, 64], [1, 1]),
    ],
)
def test_what_warpgroups_do_not_hold_so(layout):
    assert not is_mma_v3_accumulator(layout)


@given(accumulators())
def test_a_16_bit_accumulator_is_an_operand_where_it_is(drawn):
    shape, (rows, columns) = drawn
    if columns == 1 and shape[1] >= 16:
        accumulator, operand = mma_v3_accumulator(shape, [rows, 1]), mma_v3_operand(shape, [rows, 1], 16)
        assert isinstance(plan(accumulator, operand, 16), RegisterRoute)


def test_warpgroups_along_n_hold_replicas_of_a():
    assert mma_v3_operand([64, 32], [4, 2], 16).of(WARP) == ((16, 0), (32, 0), (0, 0))


@st.composite
def matrices(draw):
    shape = tuple(1 << draw(st.integers(3, 8)) for _ in range(2))
    fast, size = draw(st.sampled_from([0, 1])), draw(st.sampled_from([1, 2, 4]))
    return shape, fast, size, draw(st.sampled_from([32, 64, 128]))


@given(matrices())
def test_a_descriptor_for_every_swizzled_matrix(drawn):
    shape, fast, size, span = drawn
    found = shared_matrix(mma_shared(shape, fast, size, span), size)
    width = min(span, shape[fast] * size)
    if width < 32:
        assert found is None
    else:
        assert found == SharedMatrix(fast, width, shape[1 - fast] * width, 8 * width)


def test_a_transposition_changes_the_axis_only():
    layout = mma_shared((64, 32), 1, 2)
    assert shared_matrix(layout.transpose((1, 0)), 2) == SharedMatrix(0, 64, 4096, 512)


def test_no_descriptor_without_a_swizzle():
    assert shared_matrix(row_major((64, 64)), 2) is None
