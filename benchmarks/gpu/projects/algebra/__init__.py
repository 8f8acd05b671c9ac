"""Products of odd sizes and other precisions, sparse ones, with epilogues, small solves, microscaled formats."""

from collections.abc import Iterator

from benchmarks.gpu.case import Case
from benchmarks.gpu.projects.algebra import packed_products, products, small_matrices

TOPICS = (products, packed_products, small_matrices)


def cases(is_small: bool = False) -> Iterator[Case]:
    for topic in TOPICS:
        yield from topic.cases(is_small)
