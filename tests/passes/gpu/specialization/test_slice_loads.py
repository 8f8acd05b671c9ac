"""Layouts of a tile for fewer warps."""

from hypothesis import given
from hypothesis import strategies as st

from deuteron.ir.ttg.inference import before_broadcast
from deuteron.layout.distributed import default_blocked
from deuteron.layout.linear import LANE, REGISTER, WARP
from deuteron.passes.gpu.specialization.slice_loads import for_warps


def elements(layout, num_warps: int) -> list[set]:
    """What the threads have that stand for each warp."""
    found = [set() for _ in range(num_warps)]
    for warp in range(layout.in_size(WARP)):
        for lane in range(layout.in_size(LANE)):
            for register in range(layout.in_size(REGISTER)):
                found[warp % num_warps].add((lane, layout(register=register, lane=lane, warp=warp)))
    return found


@given(st.sampled_from([(16, 64), (64, 16), (128, 32), (8, 8)]), st.sampled_from([1, 2, 8]), st.permutations([0, 1]))
def test_a_warp_has_what_the_warps_had_that_it_stands_for(shape, vector, order):
    layout = default_blocked(shape, 8, order, vector)
    fewer = for_warps(layout, 4)
    assert fewer.in_bits(WARP) == 2
    assert elements(fewer, 4) == elements(layout, 4)


def test_nothing_is_held_twice_that_was_not():
    layout = default_blocked((4, 8), 8, [1, 0], 1)
    assert for_warps(layout, 4).in_bits(REGISTER) == 0


def test_broadcasts_fit_as_before():
    layout = default_blocked((128, 32), 8, [1, 0], 8)
    column = before_broadcast(layout, (128, 1))
    assert before_broadcast(for_warps(layout, 4), (128, 1)) == for_warps(column, 4)
