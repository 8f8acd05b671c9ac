"""What a launch on the CPU and its programs tell each other: memory to which the address after the arguments points.

    struct { i32 stop, assertion, program[3], unused; i64 lane; }

Kernels whose programs may wait for one another, or assert, have it. `stop` is 0 until the launch is to end: the caller
sets it to end all waiting (CALLED_OFF), or a program does, once, whose assertion fails (FAILED), and says which one,
where. Without that address (null) a call of the kernel has a block of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from deuteron.backend.assertion import Assertion

CALLED_OFF, FAILED = 1, 2


class Control(ctypes.Structure):
    """The block as Python reads it; the rules below use its offsets."""

    _fields_ = [
        ("stop", ctypes.c_int32),
        ("assertion", ctypes.c_int32),
        ("program", ctypes.c_int32 * 3),
        ("unused", ctypes.c_int32),
        ("lane", ctypes.c_int64),
    ]

    def raise_failure(self, assertions: Sequence[Assertion]) -> None:
        """Raise AssertionFailure if an assertion failed."""
        if self.stop == FAILED:
            raise assertions[self.assertion].failure(tuple(self.program), self.lane)


SIZE = ctypes.sizeof(Control)
