"""Seconds of a processor, as a machine of known speed would need them: what a test may hold a bar against.

    begin = used()
    compile(...)
    assert (used() - begin) / slowness() < 1.5

How long the same work takes differs by the machine, and on one by a factor of two with what its other threads do. So
fixed work that has nothing to do with Deuteron is timed beside it: objects and dictionaries, as in a compiler. A bar
still needs a factor of two to spare: caches, the allocator and ptxas do not all slow down alike.
"""

from __future__ import annotations

import os
import time

KNOWN = 0.0085  # seconds of the fixed work on a quiet core of an AMD EPYC with AVX512_BF16, Python 3.11
REPEATS = 3


def used() -> float:
    """What this process and those that it ran, such as ptxas, have used so far, in hundredths of a second."""
    return sum(os.times()[:4])


def slowness() -> float:
    """How many times as long as on the machine of known speed work takes now."""
    return min(_fixed_work() for _ in range(REPEATS)) / KNOWN


class _Node:
    def __init__(self, number: int, operands: tuple[_Node, ...]):
        self.number, self.operands = number, operands
        self.depth = 1 + max((operand.depth for operand in operands), default=0)


def _fixed_work() -> float:
    begin = time.process_time()
    nodes: dict[int, _Node] = {}
    for number in range(5_000):
        operands = tuple(nodes[other] for other in (number // 2, number - 1) if other in nodes)
        nodes[number] = _Node(number, operands)
    kinds = {}
    for node in nodes.values():
        kinds.setdefault((node.depth % 7, tuple(operand.number % 5 for operand in node.operands)), []).append(node)
    return time.process_time() - begin
