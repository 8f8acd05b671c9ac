"""What is not to be cut in two by a fork: compiles, loads, imports.

    with undivided():
        compile(...)            while a thread is here, os.fork() on another one waits

A process that is forked has the forking thread alone. What another thread was in the middle of stays half made in it,
under locks that nobody gives back, of ours, of Python's imports, of llvmlite: the first compile of the child would wait
for ever. So a fork waits for those who are at such work, and those who would begin wait for the fork. It goes ahead
after LONGEST_WAIT all the same: what it waits for may be waiting for the thread that forks.

A fork in the middle of the thread's own work, by a signal handler, waits for nobody: others may wait for what it holds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

LONGEST_WAIT = 10.0  # seconds
_LOOKS_AGAIN = 0.001  # seconds

_depths: dict[int, int] = {}  # of the blocks that a thread is in, by thread
_forking: set[int] = set()


@contextmanager
def undivided() -> Iterator[None]:
    """No other thread forks the process in this block; blocks may be nested."""
    here = threading.get_ident()
    _enter(here)
    try:
        yield
    finally:
        _leave(here)


def _enter(here: int) -> None:
    """A thread says that it is there and then looks whether one forks, which says so and looks in its turn."""
    if here in _depths:
        _depths[here] += 1
        return
    _depths[here] = 1
    while _forking - {here}:
        del _depths[here]
        time.sleep(_LOOKS_AGAIN)
        _depths[here] = 1


def _leave(here: int) -> None:
    depth = _depths.pop(here, 1) - 1
    if depth:
        _depths[here] = depth


def _before_fork() -> None:
    here = threading.get_ident()
    _forking.add(here)
    if here in _depths:
        return
    latest = time.monotonic() + LONGEST_WAIT
    while not _forking.issuperset(tuple(_depths)) and time.monotonic() < latest:
        time.sleep(_LOOKS_AGAIN)


def _after_in_parent() -> None:
    _forking.discard(threading.get_ident())


def _after_in_child() -> None:
    here = threading.get_ident()
    depth = _depths.get(here)
    _depths.clear()
    _forking.clear()
    if depth is not None:
        _depths[here] = depth


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
