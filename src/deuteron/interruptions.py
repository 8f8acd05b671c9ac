"""Exceptions that are no failure of what they came to: those that a signal handler raised, and that memory ran out.

except Exception as error:
    found = interruption(error)             TimeoutError, if a handler raised it, also where it was wrapped since
    if found is not None:
        raise found from found.__cause__

with uninterpreted():                       the same, of a block
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


def interruption(error: BaseException) -> BaseException | None:
    """The exception or what it was raised from, if that is a MemoryError or raised by a handler that is set now."""
    codes = {code for code in map(_code, map(signal.getsignal, signal.valid_signals())) if code is not None}
    return next((cause for cause in _causes(error) if _is_interruption(cause, codes)), None)


@contextmanager
def uninterpreted() -> Iterator[None]:
    """What interrupts this block leaves it as it was raised, whatever has been made of it."""
    try:
        yield
    except Exception as error:
        found = interruption(error)
        if found is None:
            raise
        raise found from found.__cause__


def _is_interruption(error: BaseException, handlers: set[CodeType]) -> bool:
    return isinstance(error, MemoryError) or not handlers.isdisjoint(_codes_in(error))


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
