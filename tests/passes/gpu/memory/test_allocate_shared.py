"""Places in shared memory: no overlap where lives overlap, and no more than is needed."""

from hypothesis import given
from hypothesis import strategies as st

from deuteron.analysis.shared_memory.shared_liveness import Buffer, Interval
from deuteron.passes.gpu.memory.allocate_shared import bytes_of, place, with_own_places


@st.composite
def buffers(draw):
    begins = draw(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 5000)), max_size=12))
    return [Buffer(None, size, Interval(begin, begin + length)) for begin, length, size in begins]


@given(buffers())
def test_buffers_in_use_together_do_not_overlap(drawn):
    offsets = place(drawn)
    for i, (one, at) in enumerate(zip(drawn, offsets, strict=True)):
        assert at % 128 == 0
        for other, there in list(zip(drawn, offsets, strict=True))[:i]:
            if one.interval.overlaps(other.interval):
                assert at + one.size <= there or there + other.size <= at


def test_buffers_one_after_the_other_share_a_place():
    drawn = [Buffer(None, 4096, Interval(0, 0)), Buffer(None, 1024, Interval(1, 1)), Buffer(None, 64, Interval(2, 2))]
    assert place(drawn) == [0, 0, 0]


def test_a_gap_is_filled():
    drawn = [
        Buffer(None, 3000, Interval(0, 1)),
        Buffer(None, 2000, Interval(0, 3)),
        Buffer(None, 1000, Interval(2, 3)),
    ]
    assert place(drawn) == [0, 3072, 0]


@given(buffers(), st.integers(0, 20000))
def test_places_of_their_own_take_no_more_than_there_is_room(drawn, room):
    own = with_own_places(drawn, room)
    assert bytes_of(own) <= max(room, bytes_of(drawn))
    assert [one.size for one in own] == [one.size for one in drawn]
    if sum(-(-one.size // 128) * 128 for one in drawn) <= room:
        assert len(set(place(own))) == len(drawn)


def test_the_smallest_have_places_of_their_own():
    drawn = [Buffer(None, 4096, Interval(0, 0)), Buffer(None, 64, Interval(1, 1)), Buffer(None, 64, Interval(2, 2))]
    assert place(with_own_places(drawn, 4288)) == [0, 4096, 4224]
    assert place(with_own_places(drawn, 4287)) == [0, 4096, 0]
