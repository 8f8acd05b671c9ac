"""Norms over groups, batches and images, softmax of a middle axis, losses, bags, sparse rows, sorts, scans."""

from collections.abc import Iterator

from benchmarks.gpu.case import Case
from benchmarks.gpu.projects.reductions import indexed_rows, losses, norms, sorts_and_scans

TOPICS = (norms, losses, indexed_rows, sorts_and_scans)


def cases(is_small: bool = False) -> Iterator[Case]:
    for topic in TOPICS:
        yield from topic.cases(is_small)
