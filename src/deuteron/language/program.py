"""The program's place in the grid, and in time.

    row = tl.program_id(0)
    for tile in range(row, n_tiles, tl.num_programs(0)): ...

A grid has up to three axes; what a launch does not give counts as 1.
"""

from __future__ import annotations

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def program_id(axis: int) -> tensor:
    """The index of this program along an axis of the grid, an int32 scalar.

    :param axis: 0, 1 or 2, known at compile time. x (axis 0) is the fastest.

    Error: an axis other than 0, 1, 2.
    """


@builtin
def num_programs(axis: int) -> tensor:
    """The number of programs that were launched along an axis of the grid, an int32 scalar.

    :param axis: 0, 1 or 2, known at compile time.

    Error: an axis other than 0, 1, 2.
    """


@builtin
def globaltimer() -> tensor:
    """Nanoseconds of a clock that all programs share, an int64 scalar; only differences mean something.

    On a GPU it advances in steps of up to a microsecond. On the emulator it counts what has happened.
    """


@builtin
def num_warps() -> int:
    """How many warps a program has: the option of that name, known when the kernel is compiled."""


@builtin
def num_threads() -> int:
    """How many threads a program has on a GPU, 32 for each warp, known when the kernel is compiled."""
