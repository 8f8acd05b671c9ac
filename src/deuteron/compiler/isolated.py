"""Compiles in a process of its own, which is there until this one ends: where DEUTERON_ISOLATE=1 asks for it, and texts
of LLVM IR.

    compile_isolated(walk)              an Entry; CompilerDied where the process ended, as LLVM ends it at a defect
    compile_text_isolated(source, ...)  the same, of the text of a stage; IRError where the process ended

The next compile starts another one. A start takes about a second, a compile after it some milliseconds more than here.
What a process knows of the environment is what was there when it started: where that has changed it is another one.
"""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path

from deuteron.backend.stage import Unit
from deuteron.compiler.ahead import Worker
from deuteron.compiler.cache import Entry
from deuteron.compiler.source import IRSource
from deuteron.compiler.stages import Walk, dump, new_folder
from deuteron.compiler.worker import Begun
from deuteron.errors import CompilerDied, DeuteronError, IRError, Location


class _Isolated:
    """The process, one compile at a time."""

    def __init__(self) -> None:
        self._worker, self._lock, self._is_busy = Worker(), threading.RLock(), False
        self._environment: dict[str, str] = {}

    def compile(self, begun: Begun) -> Entry | None:
        """None where no process can be started, or the caller is a signal handler of a thread that waits for it;
        raises what the compile raises.
        """
        with self._lock:
            if self._is_busy:
                return None
            self._is_busy = True
            try:
                self._begin_anew_if_changed()
                outcome = self._worker.compile(begun)
            except BaseException:  # an interrupt: what it is at is not wanted any more
                self.stop()
                raise
            finally:
                self._is_busy = False
        if isinstance(outcome, DeuteronError):
            raise outcome
        return outcome

    def _begin_anew_if_changed(self) -> None:
        if self._environment != dict(os.environ):
            self.stop()
            self._environment = dict(os.environ)

    def stop(self) -> None:
        self._worker.stop()
        self._worker.close()
        self._worker = Worker()


_isolated = _Isolated()


def compile_isolated(walk: Walk) -> Entry | None:
    """What all stages of a walk make that has begun with tile IR; None where no process can be started."""
    text = walk.stages[0].text(walk.products[None])
    try:
        return _isolated.compile(Begun(text, walk.unit))
    except CompilerDied as error:
        path = dump(new_folder(), walk.unit.name, "died.ttir", text)
        where = f" It worked on {path}." if path else ""
        what = f"{error.message}.{where} This is a defect of Deuteron or of LLVM: please report it"
        raise CompilerDied(f"kernel '{walk.unit.name}' for {walk.unit.target}: {what}") from error


def compile_text_isolated(source: IRSource, unit: Unit, folder: Path | None) -> Entry | None:
    """What the stages after a text make of it; None where no process can be started."""
    try:
        return _isolated.compile(Begun(source, unit, folder))
    except CompilerDied as error:
        message = f"LLVM ends its process on the {source.stage}: {error.message}"
        raise IRError(message, Location(source.file, 1)) from None


def _forget() -> None:
    """A forked process leaves that of its parent alone."""
    global _isolated
    _isolated = _Isolated()


atexit.register(lambda: _isolated.stop())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
