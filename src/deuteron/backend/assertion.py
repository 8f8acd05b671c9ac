"""Assertions of a compiled kernel: `tl.device_assert` with the option `debug`.

    Assertion(place=Location("k.py", 3, 5), calls=(), message="n too small", shape=(4,))
    assertion.failure((1, 0, 0), 2)       AssertionFailure: Assertion failed in lane (2,) of program (1, 0, 0): ...

A kernel says the number of the assertion that failed, the program and the lane; its metadata says the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deuteron.errors import AssertionFailure, Location


@dataclass(frozen=True)
class Assertion:
    """Where an assertion is, the calls that led there, innermost first, its message and the shape of its condition."""

    place: Location | None
    calls: tuple[Location, ...]
    message: str
    shape: tuple[int, ...]

    def failure(self, program: tuple[int, int, int], lane: int) -> AssertionFailure:
        """The error for a lane, counted row by row, of a program."""
        where = f"program {program}"
        if self.shape:
            where = f"lane {self._index(lane)} of {where}"
        return AssertionFailure(f"Assertion failed in {where}: {self.message}", self.place, self.calls)

    def _index(self, lane: int) -> tuple[int, ...]:
        index: list[int] = []
        for size in reversed(self.shape):
            lane, place = divmod(lane, size)
            index.insert(0, place)
        return tuple(index)


def assertion_from_fields(fields: Mapping[str, Any]) -> Assertion:
    """The assertion that was written as JSON."""
    place = Location(**fields["place"]) if fields["place"] else None
    calls = tuple(Location(**call) for call in fields["calls"])
    return Assertion(place, calls, fields["message"], tuple(fields["shape"]))
