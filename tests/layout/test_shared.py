"""Layouts of shared memory for matrix products: the swizzle of TMA, and banks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deuteron.layout.linear import OFFSET
from deuteron.layout.shared import mma_shared


@st.composite
def matrices(draw):
    shape = tuple(1 << draw(st.integers(3, 8)) for _ in range(2))
    return shape, draw(st.sampled_from([0, 1])), draw(st.sampled_from([1, 2, 4]))


@given(matrices())
def test_bytes_are_where_tma_puts_them(drawn):
    shape, fast, size = drawn
    layout = mma_shared(shape, fast, size)
    offset = np.arange(shape[0] * shape[1])
    coordinates = layout(**{OFFSET: offset})
    column, row = coordinates[fast] * size, coordinates[1 - fast]
    span = min(128, shape[fast] * size)
    plain = column // span * span * shape[1 - fast] + row * span + column % span
    mask = {128: 7, 64: 3, 32: 1}.get(span, 0)
    np.testing.assert_array_equal(offset * size, plain ^ (plain >> 7 & mask) << 4)


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("fast", [0, 1])
def test_eight_rows_of_sixteen_bytes_are_in_different_banks(fast, size):
    place = mma_shared((64, 64), fast, size).right_inverse()
    for column in range(0, 64, 16 // size):
        corners = [{f"dim{fast}": column, f"dim{1 - fast}": row} for row in range(8, 16)]
        chunks = {place(**corner)[0] * size // 16 % 8 for corner in corners}
        assert len(chunks) == 8


@given(matrices(), st.integers(0, 3))
def test_batches_lie_one_after_the_other(drawn, batch_bits):
    shape, fast, size = drawn
    batches = 1 << batch_bits
    layout = mma_shared((batches, *shape), 1 + fast, size)
    bits = mma_shared(shape, fast, size).of(OFFSET)
    assert layout.of(OFFSET) == (*((0, *basis) for basis in bits), *((1 << bit, 0, 0) for bit in range(batch_bits)))


@pytest.mark.parametrize("columns", [32, 64, 128])
@pytest.mark.parametrize("bytes_at_once", [4, 8, 16])
def test_of_reversed_rows_threads_read_one_two_or_four_words_without_bank_conflicts(columns, bytes_at_once):
    """Four lanes read neighbours of a row, eight rows a warp: as many banks at once as there are."""
    layout, held = mma_shared((16, columns), 1, 2, reverse=True), bytes_at_once // 2
    at = {layout(offset=offset): 2 * offset for offset in range(16 * columns)}
    lanes = [(row, held * lane) for row in range(8) for lane in range(4)]
    together = 128 // bytes_at_once
    for begin in range(0, len(lanes), together):
        words = {at[place] // 4 + word for place in lanes[begin : begin + together] for word in range(held // 2)}
        assert sorted(word % 32 for word in words) == list(range(32))
