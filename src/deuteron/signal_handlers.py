"""Exceptions that a signal handler has raised, in the middle of whatever the main thread was doing.

except Exception as error:
    raised = raised_by_handler(error)       TimeoutError, if a handler raised it, also where it was wrapped since
    if raised is not None:
        raise raised from raised.__cause__  it is no failure of what it came to

with unwrapped():                           the same, of a block
    ...
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType
from typing import Any


def raised_by_handler(error: BaseException) -> BaseException | None:
    """The exception, or what it was raised from, in whose traceback a handler is that is set now."""
    codes = {code for code in map(_code, map(signal.getsignal, signal.valid_signals())) if code is not None}
    return next((cause for cause in _causes(error) if not codes.isdisjoint(_codes_in(cause))), None)


@contextmanager
def unwrapped() -> Iterator[None]:
    """What a handler raises in this block leaves it as it was raised, whatever has been made of it."""
    try:
        yield
    except Exception as error:
        raised = raised_by_handler(error)
        if raised is None:
            raise
        raise raised from raised.__cause__


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The first cause first."""
    if error is not None:
        yield from _causes(error.__cause__)
        yield error


def _codes_in(error: BaseException) -> set[CodeType]:
    return {frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)}


def _code(handler: Any) -> CodeType | None:
    """What Python runs for it; None of what is no function of Python."""
    if isinstance(handler, partial):
        return _code(handler.func)
    if not callable(handler):
        return None
    function = getattr(handler, "__func__", handler)
    return getattr(function, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
