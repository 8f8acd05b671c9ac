"""Mamba 2's chunks, gated delta rules, RWKV, one step of convolutions and states, LSTM gates, an RNN's loop."""

from collections.abc import Iterator

from benchmarks.gpu.case import Case
from benchmarks.gpu.projects.recurrences import cells, delta_rules, mamba

TOPICS = (mamba, delta_rules, cells)


def cases(is_small: bool = False) -> Iterator[Case]:
    for topic in TOPICS:
        yield from topic.cases(is_small)
