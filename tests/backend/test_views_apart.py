"""Which views of one array are apart: never such as have a byte in common, and those that programs make of parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deuteron.backend.overlaps import are_apart
from deuteron.backend.spans import View, view_of

SEQUENCES = np.zeros((4, 6, 3, 2, 8), np.float32)  # batch, position, q k v, head, element


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.s_[:, :3], np.s_[:, 3:]),
        (np.s_[:, :, 0], np.s_[:, :, 1]),
        (np.s_[:, :, 1], np.s_[:, :, 0]),
        (np.s_[:, ::-1, :1], np.s_[:, :, 1:]),
        (np.s_[..., ::2], np.s_[..., 1::2]),
        (np.s_[:, :, 2, :, 7], np.s_[:, :, 0, 1, 6]),
        (np.s_[..., 0, 3:4], np.s_[..., 1, 3:4]),
        (np.s_[:2], np.s_[2:]),
        (np.s_[:, :, 0:0], np.s_[:]),
        (np.s_[0, 0, :, 0, ::2], np.s_[1::2, :, 1::2, 1, 1::2]),
    ],
)
def test_parts_of_an_array(first, second):
    first, second = view_of(SEQUENCES[first]), view_of(SEQUENCES[second])
    assert are_apart(first, second) and are_apart(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.s_[:, :4], np.s_[:, 3:]),
        (np.s_[:], np.s_[3, 5, 2, 1, 7:]),
        (np.s_[..., ::2], np.s_[..., 2::2]),
        (np.s_[:, :, 1], np.s_[2:, :, 1:2, 0]),
        (np.s_[..., ::2], np.s_[..., ::3]),
    ],
)
def test_parts_that_overlap(first, second):
    first, second = view_of(SEQUENCES[first]), view_of(SEQUENCES[second])
    assert not are_apart(first, second) and not are_apart(second, first)


def test_what_is_not_known_overlaps():
    some, none = View(64, 4, ((3, 8),)), View(64, 4, ((3, 8), (0, 1)))
    assert not are_apart(None, some) and not are_apart(some, None) and not are_apart(None, None)
    assert are_apart(None, none) and are_apart(none, None) and are_apart(some, none)


def test_elements_that_are_wider_than_a_step():
    """As `as_strided` makes them."""
    assert not are_apart(View(0, 4, ((8, 2),)), View(2, 4, ((2, 8),)))
    assert not are_apart(View(0, 8, ((8, 16),)), View(4, 8, ((8, 16),)))
    assert are_apart(View(0, 8, ((8, 16),)), View(8, 8, ((8, 16),)))


axes = st.lists(st.tuples(st.integers(0, 4), st.integers(-24, 24)), max_size=3).map(tuple)
views = st.builds(View, st.integers(200, 260), st.sampled_from([1, 2, 4, 8]), axes)


def bytes_of(view):
    places = {view.address}
    for extent, step in view.axes:
        places = {place + index * step for place in places for index in range(extent)}
    return {place + byte for place in places for byte in range(view.item)}


@settings(max_examples=400, deadline=None)
@given(views, views)
def test_views_that_have_a_byte_in_common_overlap(first, second):
    if are_apart(first, second):
        assert not bytes_of(first) & bytes_of(second)
    else:
        assert not are_apart(second, first)
        assert bytes_of(first) and bytes_of(second)
