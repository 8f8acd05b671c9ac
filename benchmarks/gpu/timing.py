"""Times of launches by events on the GPU, each with an L2 that was filled with something else.

    timer = Timer()
    timer.milliseconds([run] * 10)               [0.412, 0.409, ...]
    timer.alternate([ours, theirs], 500.0)       their medians, of launches that take turns for half a second

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

    def milliseconds(self, runs: Sequence[Callable[[], Any]]) -> list[float]:
        """Of each launch, one after the other."""
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in runs]
        for run, (start, end) in zip(runs, pairs, strict=True):
            self._other.zero_()
            start.record()
            run()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    def alternate(self, runs: Sequence[Callable[[], Any]], milliseconds: float) -> list[float]:
        """The medians of functions that take turns launch by launch, so that what happens to the clock happens to all.

        Rounds of many launches each would not do: the limit of power makes the clock depend on who ran the last 50 ms.
        """
        cycle = sum(min(self.milliseconds([run] * 2)) for run in runs)
        times = self.milliseconds([*runs] * self._repeats(cycle, milliseconds))
        return [statistics.median(times[index :: len(runs)]) for index in range(len(runs))]

    @staticmethod
    def _repeats(estimate: float, milliseconds: float) -> int:
        return max(MIN_REPEATS, min(MAX_REPEATS, int(milliseconds / estimate)))
