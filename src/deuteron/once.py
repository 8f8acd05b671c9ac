"""What a process makes once, whichever of its threads asks first.

    @once
    def jit(): ...

    jit() is jit()                      on every thread; what raises is tried again by the next call
    jit.forget()                        the next call makes another one: for tests

`functools.cache` does not hold a lock while it calls: of two threads both may call, and each gets an object of its
own, of which one is dropped. Where machine code, or an address, is taken from it, it has to be the one that stays.

What the main thread asks for is made on a thread of its own: signal handlers run on the main thread, between any two
steps of it, and may ask for the same. In the middle of an import, or of a load, they would find half of it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, TypeVar

from deuteron.forking import undivided

T = TypeVar("T")
_functions: list[once] = []
_LOOKS_AGAIN = 0.05  # seconds; that a thread ends is heard of at once, but not that there is none after a fork


@undivided()
def undisturbed(function: Callable[[], object]) -> None:
    """Call a function, undivided, on a thread that signal handlers do not interrupt. A handler that raises leaves
    the thread to its work; in the child of one that forks there is no such thread, and this returns.
    """
    if threading.current_thread() is not threading.main_thread() or sys.is_finalizing():
        function()
        return
    failed: list[BaseException] = []

    def call() -> None:
        try:
            function()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=call, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # there are no more threads
        function()
        return
    while thread.is_alive():
        thread.join(_LOOKS_AGAIN)
    if failed:
        raise failed[0]


class once(Generic[T]):  # noqa: N801
    """A function without arguments whose first result is that of every call."""

    def __init__(self, make: Callable[[], T]):
        update_wrapper(self, make)
        self._make = make
        self._lock = threading.RLock()
        _functions.append(self)
        self._made: list[T] = []

    def __call__(self) -> T:
        while not self._made:
            undisturbed(self._make_here)
        return self._made[0]

    def _make_here(self) -> None:
        with self._lock:
            if not self._made:
                self._made.append(self._make())

    def forget(self) -> None:
        self._made = []

    def renew_lock(self) -> None:
        """In a process that was forked nobody else is making it."""
        self._lock = threading.RLock()


def _renew_locks() -> None:
    for function in _functions:
        function.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


class ForkLock:
    """A lock for each process that descends from the one that made it.

        lock = ForkLock()
        with lock.here(): ...           that of this process: after a fork it is another one

    A process that was forked while another thread held the lock has no such thread, which would hold it for ever. The
    thread that holds it may take it again: a signal handler that launches, in the middle of a launch, must not wait for
    what goes on after it. So what is done under it has to be right if all of it is done in between.
    """

    def __init__(self) -> None:
        self._of_process: dict[int, threading.RLock] = {}

    def here(self) -> threading.RLock:
        """The lock of this process; whoever holds it while it forks gives back what it took."""
        process = os.getpid()
        return self._of_process.get(process) or self._of_process.setdefault(process, threading.RLock())
