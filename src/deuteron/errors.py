"""Every error that a user of Deuteron can meet, and how it is shown.

There is one base class and a few kinds. An error says what is wrong, with the values, and then what would be right.
One that has a place in a source file renders with file, line, caret and the chain of inlined calls:

    add.py:9:8: error: Expected a power of two, got BLOCK = 100. Pad it and mask the tail.
        i = tl.arange(0, BLOCK)
            ^~~~~~~~~~~~~~~~~~~
      called from main.py:20:4: add_tile(x, y, 100)
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Location:
    """A range within one line of a source file; lines and columns count from 1, `end_column` is exclusive."""

    file: str
    line: int
    column: int = 1
    end_column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def excerpt(self) -> str | None:
        """The source line with a caret line below it, or None where the file cannot be read."""
        text = linecache.getline(self.file, self.line).rstrip("\n")
        if not text.strip():
            return None
        stripped = text.lstrip()
        indent = len(text) - len(stripped)
        start = max(self.column - 1 - indent, 0)
        end = self.end_column - 1 - indent if self.end_column else start + 1
        width = max(min(end, len(stripped)) - start, 1)
        return f"    {stripped}\n    {' ' * start}^{'~' * (width - 1)}"


def counted(count: int, word: str) -> str:
    """How many there are: "1 kernel", "2 kernels", "0 entries"."""
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("ry") else f"{count} {word}s"


def suggest(name: str, known: Iterable[str]) -> str:
    """' Did you mean ...?', or nothing where no known name is alike."""
    import difflib  # deferred: 2 ms, which only a mistake needs

    cutoff = 0.6 if len(name) > 2 else 0.5  # of two letters one may be wrong
    matches = difflib.get_close_matches(name, [other for other in known if not other.startswith("__")], 3, cutoff)
    return f" Did you mean {' or '.join(repr(match) for match in matches)}?" if matches else ""


class DeuteronError(Exception):
    """Base of all errors: a message, the location it is about, and the calls that led there, innermost first."""

    def __init__(self, message: str, location: Location | None = None, call_chain: tuple[Location, ...] = ()):
        super().__init__(message)
        self.message = message
        self.location = location
        self.call_chain = call_chain

    @property
    def error_message(self) -> str:
        """The message without its place, as Triton calls it."""
        return self.message

    def __str__(self) -> str:
        head = f"{self.location}: error: {self.message}" if self.location else self.message
        excerpt = self.location.excerpt() if self.location else None
        callers = [_caller_line(call) for call in self.call_chain]
        return "\n".join([head, *([excerpt] if excerpt else []), *callers])


def _caller_line(call: Location) -> str:
    text = linecache.getline(call.file, call.line).strip()
    return f"  called from {call}: {text}" if text else f"  called from {call}"


TritonError = DeuteronError


class CompilationError(DeuteronError):
    """The source of a kernel is at fault."""


def caused(error: CompilationError) -> CompilationError:
    """The error with what Triton's programs find as its cause: at the end of a chain of calls the error in the function
    that was called; of an error that is not one of syntax or of an assertion, the message alone.
    """
    inner = error
    if error.call_chain:
        inner = error.__cause__ = type(error)(error.message, error.location)
    if type(error) is CompilationError:
        inner.__cause__ = ValueError(error.message)
    return error


class UnsupportedLanguageConstruct(CompilationError):
    """A kernel uses Python that the tile language does not have."""


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` does not hold."""


class UsageError(DeuteronError):
    """What was asked for is at fault: a command line, a signature, a grid, an option, a target, a file."""


class VariableChanged(UsageError, RuntimeError):
    """A variable that a kernel uses has changed since it was compiled; Triton's programs catch RuntimeError."""


class OtherKernel(UsageError, RuntimeError):
    """What was written down of one kernel is given to another; Triton's programs catch RuntimeError."""


def of_machine(error: OSError | MemoryError) -> str:
    """What is said of an error that is no fault of a kernel: a file or memory that is not there, or a library that
    memory is missing for, of which llvmlite says that it may not be found.
    """
    if isinstance(error, MemoryError):
        return f"there is not enough memory{f': {error}' if str(error) else ''}"
    cause = error.__context__ if error.errno is None and isinstance(error.__context__, OSError) else error
    what = "" if cause.filename is None else f"'{cause.filename}': "
    return f"{what}{cause.strerror or cause}"


def not_written(path: object, error: OSError) -> UsageError:
    """The error for a file or a folder that cannot be written."""
    reason = f"'{error.filename}' is no folder" if isinstance(error, FileExistsError) else error.strerror or error
    return UsageError(f"cannot write '{path}': {reason}")


def not_read(what: str, error: Exception) -> UsageError:
    """The error for a file, as in "'x.json'" or "the timings 'x.json'", that cannot be read, or not understood."""
    return UsageError(f"cannot read {what}: {getattr(error, 'strerror', None) or error}")


class IRError(DeuteronError):
    """Textual IR that was given as input does not parse or does not verify."""


_MORE_OF = {
    "registers per thread": "Give a larger `maxnreg`, or fewer `num_warps`.",
    "threads per block": "Give fewer `num_warps`.",
}


class OutOfResources(DeuteronError):
    """A kernel needs more of a resource than its target has."""

    def __init__(self, required: int, limit: int, name: str):
        super().__init__(
            f"out of resources: {name}: the kernel needs {required}, the target has {limit}. "
            + _MORE_OF.get(name, "Reduce block sizes or `num_stages`.")
        )
        self.required, self.limit, self.name = required, limit, name

    def __reduce__(self):
        return type(self), (self.required, self.limit, self.name)


class LaunchError(DeuteronError):
    """A compiled kernel could not be launched with the arguments, grid or device given."""


class StrictError(LaunchError):
    """A launch would have compiled, and DEUTERON_STRICT says that none may."""


class IntegerTooLarge(LaunchError, OverflowError):
    """An integer argument has more than 64 bits."""


_BAD_ACCESSES = {
    "out of bounds": ("Out-of-bounds", "Mask such lanes, or check the offsets and strides."),
    "misaligned": ("Misaligned", "An element of {size} bytes lies at a multiple of {size}."),
    "read-only": ("Read-only", "Pass an array that can be written."),
}


class MemoryAccessError(DeuteronError):
    """A kernel accessed memory outside of every array it was given (found by the interpreter, the emulator, or checks
    that are compiled in).
    """

    @classmethod
    def of(
        cls,
        problem: str,
        access: str,
        kernel: str,
        subject: str,
        size: int,
        address: int,
        array: tuple[str, int, int] | None,
        location: Location | None = None,
        call_chain: Sequence[Location] = (),
    ) -> MemoryAccessError:
        """The error for an access (`load`, `atomic rmw`) of `size` bytes by the lane or program `subject`. `array` is
        the name of the array in question, the offset of the address in it, and how many bytes it has.
        """
        what, way_out = _BAD_ACCESSES[problem]
        place = f"address {address:#x}, and the kernel was given no array"
        if array is not None:
            name, offset, num_bytes = array
            place = f"byte offset {offset} of {name}, which has {num_bytes} bytes"
        subject = f"{subject} of kernel '{kernel}'"
        text = f"{what} {access}: {subject} accesses {size} bytes at {place}. {way_out.format(size=size)}"
        return cls(text, location, call_chain)


class AssertionFailure(DeuteronError, AssertionError):
    """A `tl.device_assert` does not hold."""


class Spills(DeuteronError):
    """A configuration keeps registers in memory, which an autotuner passes over while others do not."""


class CompilerDied(DeuteronError):
    """The process that compiled a kernel ended before its time."""


class AutotunerError(DeuteronError):
    """No configuration of an autotuned kernel could be run."""


class InternalError(DeuteronError):
    """A defect of Deuteron itself; names the stage, the op and where the IR was dumped."""


class AssemblerError(InternalError):
    """The assembler of a target does not accept what Deuteron made; another configuration of a kernel may do."""
