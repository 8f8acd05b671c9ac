"""Evaluation over the graph of values, each node once, however many paths lead to it and however deep it is.

    costs = {}
    evaluate(value, costs, operands_of, lambda v: weight(v) + sum(costs[o] for o in operands_of(v)))

A tile that is used twice at each of forty steps has a trillion paths to the first one, and forty nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableMapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)
Result = TypeVar("Result")


def evaluate(
    node: Node,
    known: MutableMapping[Node, Result],
    inputs: Callable[[Node], Iterable[Node]],
    compute: Callable[[Node], Result],
) -> Result:
    """The result of a node, after that of all its inputs; results are entered into `known`."""
    pending = [node]
    while pending:
        current = pending[-1]
        if current not in known:
            missing = [part for part in inputs(current) if part not in known]
            if missing:
                pending.extend(missing)
                continue
            known[current] = compute(current)
        pending.pop()
    return known[node]
