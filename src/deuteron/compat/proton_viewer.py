"""`triton.profiler.viewer`: prints the tree of a profile with metrics that are sums over what is below a node.

tree, metrics = parse(["tflop16/s", "time/ms"], "matmul.hatchet")
print_tree(tree, metrics)
    ROOT                       213.4   1.203
      layer                    213.4   1.203
        matmul_kernel          213.4   1.203
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deuteron.compat.proton import COUNT, TIME
from deuteron.errors import UsageError

_SECOND = 1e9  # nanoseconds
_TIMES = {"s": _SECOND, "ms": 1e6, "us": 1e3, "ns": 1.0}
_PREFIXES = {"": 1.0, "g": 1e9, "t": 1e12}
_RATE = re.compile(r"([gt]?)(flop|byte)(8|16|32|64)?/s")
_TIME = re.compile(r"(avg_)?time/(s|ms|us|ns)")


def parse(metrics: Sequence[str], filename: str) -> tuple[dict[str, Any], list[str]]:
    """The root of the tree in a file, and the metrics; raises UsageError for a metric that is not in it."""
    root = json.loads(Path(filename).read_text())[0]
    for metric in metrics:
        _value(root, metric)
    return root, list(metrics)


def print_tree(tree: Mapping[str, Any], metrics: Sequence[str], depth: int = 100, precision: int = 3) -> None:
    """A line for each node, indented: its name and its metrics; "-" where it has none."""
    rows = [(f"{'  ' * level}{node['frame']['name']}", node) for level, node in _nodes(tree) if level < depth]
    width = max(len(name) for name, _ in rows)
    print(" " * width, *(f"{metric:>12}" for metric in metrics))
    for name, node in rows:
        values = (_value(node, metric) for metric in metrics)
        print(f"{name:{width}}", *(f"{'-' if value is None else f'{value:.{precision}f}':>12}" for value in values))


def _nodes(node: Mapping[str, Any], level: int = 0) -> list[tuple[int, Mapping[str, Any]]]:
    below = [found for child in node["children"] for found in _nodes(child, level + 1)]
    return [(level, node), *below]


def _sum(node: Mapping[str, Any], metric: str) -> float:
    return sum(below["metrics"].get(metric, 0) for _, below in _nodes(node))


def _value(node: Mapping[str, Any], metric: str) -> float | None:
    """A metric of a node with all below it; None where it is a quotient of nothing."""
    if rate := _RATE.fullmatch(metric):
        prefix, what, bits = rate.groups()
        time = _sum(node, TIME)
        return _sum(node, f"{what}s{bits or ''}") / time * _SECOND / _PREFIXES[prefix] if time else None
    if duration := _TIME.fullmatch(metric):
        of_one, unit = duration.groups()
        count = _sum(node, COUNT) if of_one else 1
        return _sum(node, TIME) / count / _TIMES[unit] if count else None
    if not any(metric in below["metrics"] for _, below in _nodes(node)):
        raise UsageError(
            f"The profile has no metric {metric!r}: say time/ms, avg_time/us, tflop16/s, gbyte/s, or its own."
        )
    return _sum(node, metric)


VIEWER_NAMES = {"parse": parse, "print_tree": print_tree}
