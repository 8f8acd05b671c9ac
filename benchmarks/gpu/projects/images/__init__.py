"""Convolutions, pooling, resizing, stencils, n bodies, random numbers, permutations of axes, concatenation."""

from collections.abc import Iterator

from benchmarks.gpu.case import Case
from benchmarks.gpu.projects.images import convolutions, permutations, simulations, stencils

TOPICS = (convolutions, stencils, simulations, permutations)


def cases(is_small: bool = False) -> Iterator[Case]:
    for topic in TOPICS:
        yield from topic.cases(is_small)
