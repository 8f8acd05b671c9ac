"""Chains of blocks: what is on every way, of functions drawn at random and beside the definition."""

from __future__ import annotations

from itertools import pairwise

import pytest

from deuteron.backend.llvm.flow import chains, immediate_dominators, reached


def edges(text: str) -> dict[str, list[str]]:
    """'a: b c' for each line."""
    return {line.split(":")[0].strip(): line.split(":")[1].split() for line in text.strip().splitlines()}


def test_the_chains_of_the_docstring():
    found = chains(edges("a: then end\nthen: end\nend: loop\nloop: latch\nlatch: loop after\nafter:"), "a", "after")
    assert found == [["a", "end", "after"], ["loop", "latch"]]


def test_bodies_of_loops_that_test_first_and_branches_have_chains():
    text = "a: head\nhead: body after\nbody: then else\nthen: t1\nt1: join\nelse: join\njoin: head\nafter:"
    assert chains(edges(text), "a", "after") == [["a", "after"], ["body", "join"], ["then", "t1"]]


def test_what_leaves_is_in_no_chain_and_part_of_where_it_is():
    graph = edges("a: left b\nleft:\nb: stuck c\nstuck: stuck\nc: d\nd:")
    assert chains(graph, "a", "d") == [["a", "b", "c", "d"]]
    assert set(reached(graph, "a", "b")) == {"a", "left"}
    assert set(reached(graph, "b", "c")) == {"b", "stuck"}


def test_an_end_that_nothing_leads_to():
    assert chains(edges("a: a\nend:"), "a", "end") == []


def _draw(rng, count: int) -> dict[str, list[str]]:
    """Blocks that lead to any others, so that the last can be reached."""
    graph = {str(n): [str(n + 1)] for n in range(count - 1)} | {str(count - 1): []}
    for name in list(graph)[:-1]:
        if rng.random() < 0.6:
            graph[name].append(str(rng.integers(1, count)))
    return graph


@pytest.mark.parametrize("count", [2, 5, 12, 25])
def test_dominators_are_what_every_way_passes(rng, count):
    for _ in range(20):
        graph = _draw(rng, count)
        found = immediate_dominators(graph, "0")
        for name in graph:
            passed = {other for other in graph if other == name or not _leads(graph, name, without=other)}
            above, of = {name}, name
            while of != "0":
                of = found[of]
                above.add(of)
            assert above == passed


@pytest.mark.parametrize("count", [2, 5, 12, 25])
def test_neighbours_of_a_chain_are_on_every_way_to_and_from_each_other(rng, count):
    for _ in range(20):
        graph = _draw(rng, count)
        end = str(count - 1)
        for chain in chains(graph, "0", end):
            for first, last in pairwise(chain):
                assert not _leads(graph, last, without=first)
                assert end not in _from(graph, first, without=last) or last == first


def _leads(graph: dict[str, list[str]], name: str, without: str) -> bool:
    """Whether there is a way to a block without another."""
    return without != "0" and (name == "0" or name in _from(graph, "0", without))


def _from(graph: dict[str, list[str]], first: str, without: str) -> set[str]:
    return set(reached(graph, first, without))
