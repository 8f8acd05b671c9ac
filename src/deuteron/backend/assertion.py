"""Assertions of a compiled kernel: `tl.device_assert` with the option `debug`.

    Assertion(place=Location("k.py", 3, 5), calls=(), message="n too small", shape=(4,))
    assertion.failure("k", (1, 0, 0), 2)       AssertionFailure: Assertion failed in lane (2,) of program (1, 0, 0): ...

A kernel says the number of the assertion that failed, the program and the lane; its metadata says the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.errors import AssertionFailure, Location


@dataclass(frozen=True)
class Assertion:
    """Where an assertion is, the calls that led there, innermost first, its message and the shape of its condition."""

    place: Location | None
    calls: tuple[Location, ...]
    message: str
    shape: tuple[int, ...]

    def failure(self, kernel: str, program: tuple[int, int, int], lane: int, *where: object) -> AssertionFailure:
        """The error for a lane, counted row by row, of a program."""
        subject = lane_of_program(self.shape, lane, program)
        return AssertionFailure(f"Assertion failed in {subject}: {self.message}", self.place, self.calls)


def lane_of_program(shape: tuple[int, ...], lane: int, program: tuple[int, int, int]) -> str:
    """What a message calls an element of a tile, counted row by row, or a scalar."""
    index: list[int] = []
    for size in reversed(shape):
        lane, place = divmod(lane, size)
        index.insert(0, place)
    return f"lane {tuple(index)} of program {program}" if shape else f"program {program}"
