"""What a launch on the CPU and its programs tell each other: memory to which the address after the arguments points.

    struct { i32 stop, assertion, program[3], unused; i64 lane, address; struct { i64 address, num_bytes; } spans[]; }

Kernels whose programs may wait for one another, assert, or check what they access, have it. `stop` is 0 until the
launch is to end: the caller sets it to end all waiting (CALLED_OFF), or a program does, once, whose assertion fails
(FAILED), and says which one, where; of an access the address. Kernels that check are told of the memory that each
pointer among the arguments may access, in order; zeros: that of any other. Without the address of it all (null) a call
of the kernel has a block of its own, and everything may be accessed.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence

from deuteron.backend.assertion import Assertion
from deuteron.backend.checked_access import CheckedAccess
from deuteron.backend.spans import Span

CALLED_OFF, FAILED = 1, 2


class Control(ctypes.Structure):
    """The beginning of the block as Python reads it; the rules below use its offsets."""

    _fields_ = [
        ("stop", ctypes.c_int32),
        ("assertion", ctypes.c_int32),
        ("program", ctypes.c_int32 * 3),
        ("unused", ctypes.c_int32),
        ("lane", ctypes.c_int64),
        ("address", ctypes.c_uint64),
    ]

    def raise_failure(
        self,
        kernel: str,
        assertions: Sequence[Assertion | CheckedAccess],
        spans: Sequence[tuple[str, Span | None]] = (),
    ) -> None:
        """Raise the error if an assertion failed, or an access is not in the memory that it may be in."""
        if self.stop == FAILED:
            raise assertions[self.assertion].failure(kernel, tuple(self.program), self.lane, self.address, spans)


SIZE = ctypes.sizeof(Control)
SPAN_SIZE = 16


def pack_spans(spans: Sequence[Span | None]) -> bytes:
    """The spans as they follow the beginning of the block."""
    return b"".join(struct.pack("<QQ", *(span or (0, 0))) for span in spans)
