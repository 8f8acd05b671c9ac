"""Routes of gathers: elements are where the source has them, and those that are not asked have none that is taken."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from layout.strategies import layouts, shapes

from deuteron.layout import f2
from deuteron.layout.distributed import blocked
from deuteron.layout.gather import GatherRoute, Source, plan_gather
from deuteron.layout.linear import REGISTER, WARP, LinearLayout


@st.composite
def gathers(draw):
    """Source, layout of the index, axis, and numbers of an index that often stays near."""
    shape, num_warps = draw(shapes(max_rank=2, max_bits=9)), draw(st.sampled_from([1, 4]))
    src, axis = draw(layouts(shape, num_warps)), draw(st.integers(0, len(shape) - 1))
    indices = src if draw(st.booleans()) else draw(layouts(shape, num_warps))
    extent, step, shift = shape[axis], draw(st.sampled_from([-1, 0, 1])), draw(st.integers(-2, 2))
    noise = draw(st.sampled_from([0, 0, 7]))
    count = 1 << src.total_out_bits
    own = (src.unflatten(position)[axis] for position in range(count))
    known = tuple((number * step + shift + noise * draw(st.integers(0, noise))) % extent for number in own)
    return src, indices, axis, known


@settings(max_examples=60, deadline=None)
@given(gathers())
def test_each_element_is_in_a_register_that_is_asked(gather):
    src, indices, axis, known = gather
    route = plan_gather(src, indices, axis, known)
    if route is None:
        return
    for register in range(indices.in_size(REGISTER)):
        moves = dict(route.sources(register))
        for lane in range(32):
            for warp in range(indices.in_size(WARP)):
                wanted = list(indices(register=register, lane=lane, warp=warp))
                wanted[axis] = known[indices.flatten_basis(wanted)]
                source, place = place_of(route, register, lane, warp, wanted[axis])
                assert src(register=source, lane=place, warp=warp) == tuple(wanted)
                assert source in moves and (moves[source] or place == lane)


def place_of(route: GatherRoute, register: int, lane: int, warp: int, index: int) -> tuple[int, int]:
    inputs = (route.register_bits, register), (route.lane_bits, lane), (route.warp_bits, warp), (route.axis_bits, index)
    place = [0, 0]
    for entries, bits in inputs:
        place = [part ^ f2.apply([entry[k] for entry in entries], bits) for k, part in enumerate(place)]
    return place[0], place[1]


def held(per_thread: int, num_warps: int = 1) -> LinearLayout:
    return blocked((32 * per_thread * num_warps,), (per_thread,), (32,), (num_warps,), (0,))


def test_the_neighbour_is_in_one_register():
    """The first element takes itself: the first lane has that in another register than the others."""
    route = plan_gather(held(4), held(4), 0, (0, *range(127)))
    others = tuple((Source(register, False),) for register in range(3))
    assert route.known == ((Source(0, False), Source(3, True)), *others)
    assert len(plan_gather(held(4), held(4), 0).sources(0)) == 4


def test_many_registers_are_asked_where_it_is_known_which():
    """Of 16, each is one of another lane's."""
    count = 32 * 16
    assert plan_gather(held(16), held(16), 0) is None
    route = plan_gather(held(16), held(16), 0, tuple(reversed(range(count))))
    assert route.known == tuple((Source(15 - register, True),) for register in range(16))


def test_what_another_warp_has_is_no_route():
    assert plan_gather(held(1, 4), held(1, 4), 0, tuple(range(128))) is None
