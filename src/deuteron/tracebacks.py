"""The traceback of an error that a user meets: his own frames, without ours between and above them.

    @api_boundary                   a function that programs call
    def compile(...): ...

    @api_boundary                   a class of which they make objects
    class Config: ...

    with api_boundary:              the same, without a frame in between
        return self._run(...)

Of an error that leaves such a function frames are shown where they are the program's: what called it, a grid that is a
function, a hook; so it is with its causes. A defect of Deuteron (InternalError), an error of another class, and with
DEUTERON_FRONT_END_DEBUGGING any error, are shown whole.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from types import FrameType, TracebackType
from typing import Any, TypeVar

from deuteron.errors import DeuteronError, InternalError
from deuteron.settings import settings

F = TypeVar("F", bound=Callable[..., Any])

_OURS = __name__.partition(".")[0]
_CALLED_BY_US = sys.stdlib_module_names | {"xdsl"}


class _ApiBoundary:
    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, DeuteronError) and not settings.front_end_debugging:
            _hide_ours(error, set())

    def __call__(self, function: F) -> F:
        if isinstance(function, type):
            function.__init__ = self(function.__init__)  # type: ignore[misc]
            return function

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call  # type: ignore[return-value]


api_boundary = _ApiBoundary()


def _hide_ours(error: BaseException | None, seen: set[int]) -> None:
    """Of an error, and of those that led to it, up to a defect."""
    if error is None or id(error) in seen or isinstance(error, InternalError):
        return
    seen.add(id(error))
    error.__traceback__ = without_ours(error.__traceback__)
    _hide_ours(error.__cause__, seen)
    _hide_ours(error.__context__, seen)


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback of the frames that are the program's."""
    found = None
    for frame in reversed(list(_frames_of_the_program(trace))):
        found = TracebackType(found, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return found


def level_of_the_program() -> int:
    """The `stacklevel` of a warning of the caller's that is about what the program has called."""
    frame, level = sys._getframe(1), 1
    while _package_of(frame) == _OURS and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    return level


def _package_of(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]


def _frames_of_the_program(trace: TracebackType | None) -> Iterator[TracebackType]:
    """Frames of Python's library and of xDSL are ours where it is we who called them."""
    is_ours = False
    while trace is not None:
        package = _package_of(trace.tb_frame)
        is_ours = package == _OURS or (is_ours and package in _CALLED_BY_US)
        if not is_ours:
            yield trace
        trace = trace.tb_next
