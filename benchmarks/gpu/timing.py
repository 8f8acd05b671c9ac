"""Times of launches by events on the GPU, each with an L2 that was filled with something else.

    timer = Timer()
    timer.milliseconds(run, 10)                  [0.412, 0.409, ...]
    timer.alternate([ours, theirs], 5, 100.0)    their medians, over five rounds that take turns

Filling the L2 takes longer than the host needs for a launch, so the GPU never waits for the host in between.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch

FLUSH_BYTES = 2**29
MIN_REPEATS, MAX_REPEATS = 3, 200


class Timer:
    """Owns the memory that flushes the L2."""

    def __init__(self) -> None:
        self._other = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def milliseconds(self, run: Callable[[], Any], repeats: int) -> list[float]:
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        for start, end in pairs:
            self._other.zero_()
            start.record()
            run()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def screen(self, run: Callable[[], Any], milliseconds: float) -> float:
        """A first median, of launches that take about this long in all; the first few do not count."""
        self.milliseconds(run, 2)
        estimate = min(self.milliseconds(run, 2))
        return statistics.median(self.milliseconds(run, self._repeats(estimate, milliseconds)))

    def alternate(self, runs: Sequence[Callable[[], Any]], rounds: int, milliseconds: float) -> list[float]:
        """The medians of functions that take turns, so that what happens to the clock happens to all.

        Every other round goes backwards: whoever follows the function that draws the most power runs at a lower clock.
        """
        counts = [self._repeats(min(self.milliseconds(run, 2)), milliseconds) for run in runs]
        times: list[list[float]] = [[] for _ in runs]
        turns = list(zip(runs, counts, times, strict=True))
        for index in range(rounds):
            for run, count, samples in turns[:: -1 if index % 2 else 1]:
                samples += self.milliseconds(run, count)
        return [statistics.median(samples) for samples in times]

    @staticmethod
    def _repeats(estimate: float, milliseconds: float) -> int:
        return max(MIN_REPEATS, min(MAX_REPEATS, int(milliseconds / estimate)))
