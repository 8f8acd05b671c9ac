"""Decoding over pages and slots, experts in fp8, LoRA, rotary embeddings in place, caches, sampling, quantisation."""

from collections.abc import Iterator

from benchmarks.gpu.case import Case
from benchmarks.gpu.projects.serving import attention, experts, quantised, rotary, sampling

TOPICS = (attention, experts, rotary, quantised, sampling)


def cases(is_small: bool = False) -> Iterator[Case]:
    for topic in TOPICS:
        yield from topic.cases(is_small)
