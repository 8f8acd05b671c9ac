"""How deep a kernel may nest: what follows a `return`, and an `elif`, is inside of what comes before it.

    if n == 0:                  scf.if %a {} else {
        return                    scf.if %b {} else {
    if n == 1:                      ...
        return

Each level takes eight calls of Python, whose own limit of 1,000 would end at 120 levels, and that of a compile at 490.
Deeper kernels are refused. Python's calls may take memory of C's stack, of which a thread has 8 MB and a level here at
most 8 KB. Where calls go too deep in tile IR that does not nest like that the kernel is not at fault: something of ours
calls itself without end.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from deuteron.errors import CompilationError, InternalError, Location

MOST_CALLS = 4000
MOST_CALLS_OF_A_LEVEL = 40  # eight are usual


class _Limit:
    """Python's limit while kernels are compiled, in however many threads, and the one that it gets back."""

    def __init__(self) -> None:
        self._lock, self._compiles, self._before = Lock(), 0, 0

    def raise_(self) -> None:
        with self._lock:
            if self._compiles == 0:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, MOST_CALLS))
            self._compiles += 1

    def lower(self) -> None:
        with self._lock:
            self._compiles -= 1
            if self._compiles == 0:
                sys.setrecursionlimit(self._before)


_LIMIT = _Limit()


@contextmanager
def deep_calls() -> Iterator[None]:
    """Let Python call as deep as kernels may nest."""
    _LIMIT.raise_()
    try:
        yield
    finally:
        _LIMIT.lower()


def too_deep(error: BaseException, name: str, given: Any) -> CompilationError | None:
    """What to say where calls went too deep on what a stage was given, which is None for the frontend; None: an error
    is due to something else.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, RecursionError):
        cause = cause.__cause__
    if cause is None or (given is not None and _levels(given) * MOST_CALLS_OF_A_LEVEL < MOST_CALLS):
        return None
    return _refusal(name, error.location if isinstance(error, InternalError) else None)


def _levels(given: Any) -> int:
    """How deep tile IR is at most where its functions are inlined; 0: a text, which is in lines."""
    from xdsl.dialects.builtin import ModuleOp  # deferred: of kernels that are refused only

    if not isinstance(given, ModuleOp):
        return 0
    deepest: dict[Any, int] = {}
    left = [(op, op, 1) for op in given.ops]
    while left:
        function, op, level = left.pop()
        deepest[function] = max(level, deepest.get(function, 0))
        blocks = (block for region in op.regions for block in region.blocks)
        left += [(function, inner, level + 1) for block in blocks for inner in block.ops]
    return sum(deepest.values())


def _refusal(name: str, location: Location | None) -> CompilationError:
    return CompilationError(
        f"'{name}' nests too deep to be compiled, in some hundred levels: each 'elif', and what follows each 'if' that "
        "returns, is inside the one before it. Compute conditions by tl.where, or put branches side by side.",
        location,
    )
