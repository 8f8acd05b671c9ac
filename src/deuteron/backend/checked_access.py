"""Accesses of a compiled kernel that are checked against the arrays of its launch.

    CheckedAccess(place=Location("k.py", 3, 5), calls=(), shape=(64,), access="load", num_bytes=4, base=0)
    access.failure("add", (1, 0, 0), lane=2, address=140213..., spans=[("x_ptr", Span(...))])
        MemoryAccessError: Out-of-bounds load: lane (2,) of program (1, 0, 0) of kernel 'add' accesses 4 bytes at ...

A kernel says the number of the access, the program, the lane and the address; its metadata says the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deuteron.backend.assertion import lane_of_program
from deuteron.backend.spans import Span
from deuteron.errors import Location, MemoryAccessError


@dataclass(frozen=True)
class CheckedAccess:
    """Where an access is, the calls that led there, innermost first, the shape of the tile, what is done to how many
    bytes, and the number among the pointers of the argument that the address is computed from, -1 where it may be any.
    """

    place: Location | None
    calls: tuple[Location, ...]
    shape: tuple[int, ...]
    access: str
    num_bytes: int
    base: int

    def failure(
        self,
        kernel: str,
        program: tuple[int, int, int],
        lane: int,
        address: int,
        spans: Sequence[tuple[str, Span | None]],
    ) -> MemoryAccessError:
        """The error for a lane, counted row by row. `spans`: of the pointers, with their names; None of no array."""
        problem = "misaligned" if address % self.num_bytes else "out of bounds"
        name, span = spans[self.base] if self.base >= 0 else ("", None)
        if span is None:
            name, span = _nearest(address, spans)
        array = span and (name, address - span.address, span.num_bytes)
        subject = lane_of_program(self.shape, lane, program)
        return MemoryAccessError.of(
            problem, self.access, kernel, subject, self.num_bytes, address, array, self.place, self.calls
        )


def _nearest(address: int, spans: Sequence[tuple[str, Span | None]]) -> tuple[str, Span | None]:
    """The array closest to an address, if there is one."""

    def distance(found: tuple[str, Span]) -> int:
        begin, num_bytes = found[1]
        return max(begin - address, address - begin - num_bytes, 0)

    return min(((name, span) for name, span in spans if span), key=distance, default=("", None))
