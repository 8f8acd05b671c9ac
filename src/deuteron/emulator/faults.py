"""What the emulator finds at fault in a kernel, and where: the PTX line, the source line, the block and the threads.

    raise Fault("out-of-bounds", "reads 4 bytes at 16 past the end of argument 0", threads)

`Fault` is raised by an instruction with the wave-wide numbers of the threads; the scheduler turns it into an
`EmulatorError`, which knows the place:

    add.py:12: error: out-of-bounds: ld.global.b32 reads 4 bytes at 16 past the end of argument 0
      PTX line 57: ld.global.b32 %r7, [%rd3];
      kernel add, block (0, 0, 0), threads 100-127
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from deuteron.errors import AssertionFailure, DeuteronError, Location, MemoryAccessError


class Fault(Exception):
    """A fault of the kernel, as an instruction raises it; `kind` is one of the names in docs/emulator.md."""

    def __init__(self, kind: str, message: str, threads: np.ndarray | Sequence[int] = ()):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.threads = np.asarray(threads, np.int64)


@contextmanager
def blaming(threads: np.ndarray) -> Iterator[None]:
    """Faults raised inside name threads by their position in `threads`."""
    try:
        yield
    except Fault as fault:
        fault.threads = threads[fault.threads] if len(fault.threads) else threads
        raise


@dataclass(frozen=True)
class Place:
    """Where in a launch something happened; lines count from 1."""

    kernel: str
    ptx_line: int
    ptx_text: str
    source: Location | None = None
    block: tuple[int, int, int] | None = None
    threads: str = ""

    def describe(self) -> str:
        where = f"\n  kernel {self.kernel}"
        where += f", block {self.block}" if self.block is not None else ""
        where += f", threads {self.threads}" if self.threads else ""
        return f"\n  PTX line {self.ptx_line}: {self.ptx_text}{where}"


class EmulatorError(DeuteronError):
    """A fault of a kernel found by the emulator; `kind` names the check, `place` says where."""

    def __init__(self, kind: str, message: str, place: Place):
        super().__init__(f"{kind}: {message}{place.describe()}", place.source)
        self.kind = kind
        self.place = place

    def __reduce__(self):
        return _rebuild, (type(self), self.kind, self.message, self.place)


class EmulatedMemoryError(EmulatorError, MemoryAccessError):
    """An access outside of every allocation."""


class EmulatedAssertion(EmulatorError, AssertionFailure):
    """A `tl.device_assert` that does not hold."""


class UnknownInstruction(DeuteronError):
    """PTX that the emulator does not know: the message names the line."""

    def __init__(self, message: str, line: int, text: str):
        super().__init__(f"PTX line {line}: {message}: {text}")
        self.line = line

    def __reduce__(self):
        return _rebuild_unknown, (self.message, self.line)


_CLASSES = {"out-of-bounds": EmulatedMemoryError, "assertion": EmulatedAssertion}


def make_error(fault: Fault, place: Place) -> EmulatorError:
    kind = _CLASSES.get(fault.kind, EmulatorError)
    return kind(fault.kind, fault.message, place)


def format_ranges(numbers: np.ndarray) -> str:
    """`0-31, 64` for a sorted list of thread numbers."""
    numbers = np.unique(numbers)
    if not len(numbers):
        return ""
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) != 1)
    ends = np.append(starts[1:], len(numbers)) - 1
    ranges = [(numbers[a], numbers[b]) for a, b in zip(starts, ends, strict=True)]
    text = ", ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in ranges[:8])
    return text + (", ..." if len(ranges) > 8 else "")


def _rebuild(cls: type, kind: str, message: str, place: Place) -> EmulatorError:
    error = cls(kind, "", place)
    error.message, error.args = message, (message,)
    return error


def _rebuild_unknown(message: str, line: int) -> UnknownInstruction:
    error = UnknownInstruction("", line, "")
    error.message, error.args = message, (message,)
    return error
