"""Programs that may wait for one another: one runs at a time; others go on whenever a waiting loop comes round.

    while tl.atomic_cas(lock, 0, 1) != 0: pass         after each round the next program that has not ended runs

Each program has a thread, of which only one is ever awake, so that results do not depend on the machine. A program
that comes round with the values that it had, and memory as it was, will do the same again until somebody else writes.
If that is so for all that have not ended, none of them ever does: that is an error instead of a hang.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from xdsl.ir import Operation

from deuteron.errors import LaunchError
from deuteron.ir.location import from_attribute

ProgramId = tuple[int, int, int]
Pause = Callable[[Operation, object], None]


class _Abandoned(BaseException):
    """Ends a program's thread where the launch has failed."""


class _Program:
    """One program and its thread; `loop` is where it waits, `state` all that decides what it does next."""

    def __init__(self, id: ProgramId, run: Callable[[ProgramId, Pause], None]):
        self.id = id
        self.loop: Operation | None = None
        self.is_futile = self.has_ended = False
        self.error: BaseException | None = None
        self._run = run
        self._state: object = None
        self._is_abandoned = False
        self._turn, self._back = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def go_on(self) -> None:
        """Let the program run until it pauses or ends."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        self._turn.release()
        self._back.acquire()

    def abandon(self) -> None:
        """End the thread where it stands."""
        self._is_abandoned = True
        if self._thread is not None and not self.has_ended:
            self.go_on()

    def _work(self) -> None:
        self._turn.acquire()
        try:
            self._run(self.id, self._pause)
        except BaseException as error:  # raised again by the thread that launched
            self.error = error
        self.has_ended = True
        self._back.release()

    def _pause(self, loop: Operation, state: object) -> None:
        self.is_futile = state is not None and state == self._state
        self.loop, self._state = loop, state
        self._back.release()
        self._turn.acquire()
        if self._is_abandoned:
            raise _Abandoned


def run_in_turns(ids: Iterable[ProgramId], run: Callable[[ProgramId, Pause], None]) -> None:
    """Call `run(id, pause)` for all programs; it calls `pause(loop, state)` wherever others may go on.

    A state of None is like no other. Raises what a program raised, and LaunchError where all wait for ever.
    """
    queue = deque(_Program(id, run) for id in ids)
    num_futile = 0
    try:
        while queue:
            program = queue[0]
            program.go_on()
            if program.error is not None:
                raise program.error
            num_futile = num_futile + 1 if program.is_futile and not program.has_ended else 0
            queue.rotate(-1)
            if program.has_ended:
                queue.pop()
            elif num_futile == len(queue):
                raise _deadlock(queue)
    finally:
        for program in queue:
            program.abandon()


def _deadlock(waiting: Iterable[_Program]) -> LaunchError:
    first = min(waiting, key=lambda program: program.id[::-1])
    others = len(list(waiting)) - 1
    rest = f", and so do the {others} others that have not ended" if others else ""
    message = (
        f"program {first.id} waits in this loop for what no program writes any more{rest}. "
        "Check who stores what it waits for, and that this happens before, not after, a wait for it."
    )
    return LaunchError(message, *from_attribute(first.loop.location))
