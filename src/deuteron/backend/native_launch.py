"""How the compiled launcher gives packed arguments to a target, without Python.

    native = loaded.native_launch()         of what a backend's `load` returns; None where Python has to do it
    native.function                         int64 run(const uint64_t *target, const uint64_t extents[3],
                                                      uint64_t *values, uint64_t stream)
    native.target                           the words that `target` points to

Each extent is from 1 to 2**31 - 1. `values` are the slots of `arguments.py`, which the function may change. It is
called without Python's lock. It returns 0, PYTHON_LAUNCHES, where it did nothing and `run_packed(extents, values,
stream)` is to do it, or the number of an error: it has set an exception of Python (an interrupt came), or
`fail(number, extents)` raises one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

PYTHON_LAUNCHES = -1
MISSING = object()


def _no_errors(number: int, extents: Sequence[int]) -> None:
    raise AssertionError(f"a launch of {extents} returned {number}")


class NativeLaunch(NamedTuple):
    """A function of the target, what it is given, and, on a GPU, where the stream of a launch comes from.

    `stream(device)` is asked before each launch; without it the stream is 0. `conditions` are what has to be as it is
    for that: a dictionary, a key, and the object that it has there, or MISSING.
    """

    function: int
    target: tuple[int, ...]
    fail: Callable[[int, Sequence[int]], None] = _no_errors
    stream: Callable[[int], int] | None = None
    device: int = 0
    conditions: tuple[tuple[dict, Any, Any], ...] = ()
