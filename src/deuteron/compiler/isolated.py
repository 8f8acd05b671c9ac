"""Compiles in a process of its own (DEUTERON_ISOLATE=1), which is there until this one ends.

    compile_isolated(walk)      an Entry; CompilerDied where the process ended, as LLVM ends it at a defect of its own

The next compile starts another one. A start takes about a second, a compile after it some milliseconds more than here.
"""

from __future__ import annotations

import atexit
import os
import threading

from deuteron.compiler.ahead import Worker
from deuteron.compiler.cache import Entry
from deuteron.compiler.stages import Walk, dump, new_folder
from deuteron.errors import CompilerDied, DeuteronError


class _Isolated:
    """The process, one compile at a time."""

    def __init__(self) -> None:
        self._worker, self._lock, self._is_busy = Worker(), threading.RLock(), False

    def compile(self, walk: Walk) -> Entry | None:
        """None where no process can be started, or the caller is a signal handler of a thread that waits for it;
        raises what the compile raises.
        """
        text = walk.stages[0].text(walk.products[None])
        with self._lock:
            if self._is_busy:
                return None
            self._is_busy = True
            try:
                outcome = self._worker.compile((text, walk.unit))
            except BaseException:  # an interrupt: what it is at is not wanted any more
                self.stop()
                raise
            finally:
                self._is_busy = False
        if isinstance(outcome, CompilerDied):
            raise CompilerDied(f"kernel '{walk.unit.name}' for {walk.unit.target}: {_explained(outcome, walk, text)}")
        if isinstance(outcome, DeuteronError):
            raise outcome
        return outcome

    def stop(self) -> None:
        self._worker.stop()
        self._worker.close()
        self._worker = Worker()


def _explained(error: CompilerDied, walk: Walk, text: str) -> str:
    path = dump(new_folder(), walk.unit.name, "died.ttir", text)
    where = f" It worked on {path}." if path else ""
    return f"{error.message}.{where} This is a defect of Deuteron or of LLVM: please report it"


_isolated = _Isolated()


def compile_isolated(walk: Walk) -> Entry | None:
    """What all stages of a walk make that has begun with tile IR; None where no process can be started."""
    return _isolated.compile(walk)


def _forget() -> None:
    """A forked process leaves that of its parent alone."""
    global _isolated
    _isolated = _Isolated()


atexit.register(lambda: _isolated.stop())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
