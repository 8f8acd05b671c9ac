"""What is reached, each once."""

from __future__ import annotations

from deuteron.ir.reached import reached


def test_each_once_however_many_ways_lead_there():
    """Forty pairs, of which each is followed by both of the next."""
    asked = []

    def following(node: tuple[int, int]) -> list[tuple[int, int]]:
        asked.append(node)
        return [(node[0] + 1, side) for side in (0, 1, 0)] if node[0] < 40 else []

    found = list(reached([(0, 0), (0, 0)], following))
    assert len(found) == len(set(found)) == len(asked) == 81


def test_a_ring_ends():
    assert sorted(reached([3], lambda number: [(number + 1) % 5])) == [0, 1, 2, 3, 4]


def test_what_follows_is_asked_after_a_node_is_handed_out():
    """So that whoever stops at a node need not be able to say what follows it."""
    assert next(iter(reached([1], lambda node: 1 // 0))) == 1
