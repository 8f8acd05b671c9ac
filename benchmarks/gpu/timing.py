"""Times of launches by events on the GPU, each with an L2 that was filled with something else.

    timer = Timer()
    timer.milliseconds([launch] * 10)            [0.412, 0.409, ...]
    timer.alternate([ours, theirs], 500.0)       their medians, of launches that take turns for half a second

Filling the L2 takes longer than the host needs for a launch, so the GPU never waits for the host in between.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

FLUSH_BYTES = 2**29
COPIED_BYTES = 2**30
MIN_REPEATS, MAX_REPEATS = 3, 200
NUM_WARM = 3


@dataclass(frozen=True)
class Launch:
    """What is timed, and what comes before it and is not."""

    run: Callable[[], Any]
    prepare: Callable[[], None] = lambda: None


class Timer:
    """Owns the memory that flushes the L2."""

    def __init__(self) -> None:
        self._other = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def milliseconds(self, launches: Sequence[Launch]) -> list[float]:
        """Of each launch, one after the other."""
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in launches]
        for launch, (start, end) in zip(launches, pairs, strict=True):
            launch.prepare()
            self._other.zero_()
            start.record()
            launch.run()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def alternate(self, launches: Sequence[Launch], milliseconds: float) -> list[float]:
        """The medians of functions that take turns launch by launch, so that what happens to the clock happens to all.

        Rounds of many launches each would not do: the limit of power makes the clock depend on who ran the last 50 ms.
        Each round has an order of its own: launches of 25 us take 2 % more or less by which one comes before.
        """
        self.milliseconds([*launches] * NUM_WARM)  # what launches find out once
        cycle = sum(min(self.milliseconds([launch] * 2)) for launch in launches)
        order = _rounds(len(launches), self._repeats(cycle, milliseconds))
        times: list[list[float]] = [[] for _ in launches]
        for index, time in zip(order, self.milliseconds([launches[index] for index in order]), strict=True):
            times[index].append(time)
        return [statistics.median(of_launch) for of_launch in times]

    def copy_rate(self) -> float:
        """What a copy reads and writes, in GB/s."""
        x = torch.empty(COPIED_BYTES // 4, dtype=torch.int32, device="cuda")
        copied = torch.empty_like(x)
        return 2 * COPIED_BYTES * 1e-6 / statistics.median(self.milliseconds([Launch(lambda: copied.copy_(x))] * 20))

    @staticmethod
    def _repeats(estimate: float, milliseconds: float) -> int:
        return max(MIN_REPEATS, min(MAX_REPEATS, int(milliseconds / estimate)))


def _rounds(count: int, repeats: int) -> list[int]:
    """Each number below `count` once in each of the rounds; the same ones in every run."""
    order = random.Random(count)
    return [index for _ in range(repeats) for index in order.sample(range(count), count)]
