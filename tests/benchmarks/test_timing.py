"""Launches that are compared come before and after one another equally often; needs torch."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

COSTS = {"ours": 1.0, "theirs": 2.0, "vendor": 4.0}


@pytest.fixture
def timer():
    """One on which each launch takes twice as long after the vendor's."""
    from benchmarks.gpu.timing import Timer  # deferred: it needs torch

    class Stub(Timer):
        def __init__(self):
            self.launched = []

        def milliseconds(self, launches):
            self.launched += launches
            before = ["vendor", *launches]
            return [COSTS[one] * (1 + (last == "vendor")) for last, one in zip(before, launches, strict=False)]

    return Stub()


def test_medians_are_of_the_launches_that_they_are_told_for(timer):
    assert timer.alternate(["ours", "theirs"], 300.0) == [1.0, 2.0]


def test_no_launch_always_comes_after_the_same(timer):
    assert timer.alternate([*COSTS], 2200.0) == [1.0, 2.0, 4.0]
    in_turns = timer.launched[-3 * 200 :]
    neighbours = Counter(pair for pair in pairwise(in_turns) if len({*pair}) == 2)
    assert len(neighbours) == 6 and min(neighbours.values()) > 60
