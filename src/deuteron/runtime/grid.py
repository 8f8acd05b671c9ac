"""The grid of a launch: one to three extents.

    (8,)  ->  (8, 1, 1)          lambda meta: (cdiv(n, meta["BLOCK"]),)

A function is called with the arguments by name, constexprs and options included.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from traceback import walk_tb
from typing import Any, NoReturn

from deuteron.errors import DeuteronError, LaunchError, Location, suggest

Grid = int | Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]

MAX_EXTENT = 2**31 - 1


def call_with_arguments(function: Callable[[Mapping[str, Any]], Any], arguments: Mapping[str, Any], what: str) -> Any:
    """What a function of the launch's arguments gives; raises LaunchError, at the line of the function that fails."""
    try:
        return function(arguments)
    except Exception as error:
        raise_located(error, function, arguments, what)


def raise_located(
    error: BaseException, function: Callable[..., Any], arguments: Mapping[str, Any], what: str
) -> NoReturn:
    """Raise what a function of the launch's arguments raised, as a LaunchError that says where, unless it is ours."""
    if isinstance(error, DeuteronError) or not isinstance(error, Exception):
        raise error
    known = ", ".join(arguments)
    name = error.args[0] if isinstance(error, KeyError) and error.args else None
    near = suggest(name, arguments) if isinstance(name, str) else ""
    if isinstance(error, AttributeError) and error.obj is arguments:
        near = f' Write `["{error.name}"]`.'
    raise LaunchError(
        f"{what} failed with {type(error).__name__}: {error}. It is given a dictionary of {known}.{near}",
        location_of(function, error),
    ) from error


def location_of(function: Any, error: Exception) -> Location | None:
    """The line of a function that raised, or its first where it was not come to; None of what has no lines."""
    code = getattr(function, "__code__", None)
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    line = next((line for found, line in reversed(frames) if found is code), None)
    if code is None:
        return None
    return Location(code.co_filename, line or code.co_firstlineno)


def _shown(grid: Any) -> str:
    text = repr(grid)
    return text if len(text) < 80 else f"a {type(grid).__name__}"


def _whole(grid: Any) -> str:
    extents = grid if isinstance(grid, tuple | list) else (grid,)
    return ": divide with // or deuteron.cdiv" if any(isinstance(extent, float) for extent in extents) else ""


def evaluate_grid(grid: Grid, kernel: str, meta: Callable[[], Mapping[str, Any]]) -> tuple[int, int, int]:
    """The three extents; `meta()` gives the arguments by name, for a grid that is a function."""
    if callable(grid):
        grid = call_with_arguments(grid, meta(), grid_of(kernel))
    return check_extents(grid, kernel)


def grid_of(kernel: str) -> str:
    """What messages call it."""
    return f"the grid of kernel '{kernel}'"


def check_extents(grid: int | Sequence[int], kernel: str) -> tuple[int, int, int]:
    """The three extents of a grid that is no function; raises LaunchError."""
    try:
        extents = tuple(map(operator.index, grid)) if isinstance(grid, tuple | list) else (operator.index(grid),)
    except TypeError:
        raise LaunchError(
            f"the grid of kernel '{kernel}' must be one to three integers, got {grid!r}{_whole(grid)}"
        ) from None
    if not 1 <= len(extents) <= 3:
        raise LaunchError(f"the grid of kernel '{kernel}' must have one to three extents, got {grid!r}")
    if min(extents) < 0 or max(extents) > MAX_EXTENT:
        raise LaunchError(f"the extents of the grid of kernel '{kernel}' go from 0 to {MAX_EXTENT}, got {grid!r}")
    return (*extents, 1, 1)[:3]
