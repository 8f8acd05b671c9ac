"""The grid of a launch: one to three extents.

    (8,)  ->  (8, 1, 1)          lambda meta: (cdiv(n, meta["BLOCK"]),)

A function is called with the arguments by name, constexprs and options included.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deuteron.errors import LaunchError

Grid = int | Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]

MAX_EXTENT = 2**31 - 1


def evaluate_grid(grid: Grid, kernel: str, meta: Callable[[], Mapping[str, Any]]) -> tuple[int, int, int]:
    """The three extents; `meta()` gives the arguments by name, for a grid that is a function."""
    if callable(grid):
        grid = grid(meta())
    try:
        extents = tuple(map(operator.index, grid)) if isinstance(grid, tuple | list) else (operator.index(grid),)
    except TypeError:
        raise LaunchError(f"the grid of kernel '{kernel}' must be one to three integers, got {grid!r}") from None
    if not 1 <= len(extents) <= 3:
        raise LaunchError(f"the grid of kernel '{kernel}' must have one to three extents, got {grid!r}")
    if min(extents) < 0 or max(extents) > MAX_EXTENT:
        raise LaunchError(f"the extents of the grid of kernel '{kernel}' go from 0 to {MAX_EXTENT}, got {grid!r}")
    return (*extents, 1, 1)[:3]
