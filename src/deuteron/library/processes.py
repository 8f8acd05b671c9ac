"""Compiles in processes, each for kernels of one source, so that no module of one is taken for that of another.

    for variant, outcome in compiled(variants, root, processes=2):
        ...                                 a Compiled or a Mistake, in the order in which they are done

A process that ends before its time, as LLVM may do, is a Mistake about the variant that it was at. None imports the
program that asked: it may be a script that builds whenever it is executed, and would wait for itself. Ctrl-C ends them
without a word, also while they import the compiler: what it means is said by the build.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.forkserver
import multiprocessing.resource_tracker
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType

from deuteron.errors import UsageError
from deuteron.library.variants import Variant
from deuteron.library.worker import Compiled, Mistake, serve

_SOCKET_NAME = "/pymp-12345678/listener-12345678"  # of multiprocessing's, in the temporary folder
_MOST_OF_SOCKET_NAME = 103  # bytes; Linux has 107
_MAX_SHARE = 16  # variants of a process: their progress is known one by one, and an import is made good by a few


def available_processes() -> int:
    """As many as this process may use processors."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compiled(variants: Sequence[Variant], root: Path, processes: int) -> Iterator[tuple[Variant, Compiled | Mistake]]:
    """The outcome of every variant, as it is there."""
    context = _context()
    pending = deque(shares(variants, processes))
    running: dict[Connection, _Running] = {}
    try:
        while pending or running:
            while pending and len(running) < processes:
                started = _start(context, pending.popleft(), root)
                running[started.connection] = started
            for connection in wait(list(running)):
                yield from _received(running, connection, pending)
    finally:
        for started in running.values():
            started.process.terminate()


@dataclass
class _Running:
    """A process and the variants that it has still to do."""

    process: BaseProcess
    connection: Connection
    left: deque[Variant]


def _context() -> multiprocessing.context.BaseContext:
    """Processes that come of one which has imported the compiler; where there are none such, new ones.

    Either starts `sys.executable`. A program that is frozen would be started again, and one that Python is embedded in,
    or whose user may not execute Python's file, has none: they are forked.
    """
    if getattr(sys, "frozen", False) or not os.access(sys.executable or "", os.X_OK):
        return multiprocessing.get_context("fork")
    multiprocessing.resource_tracker.ensure_running()  # which they start otherwise, and which lets Ctrl-C through again
    if "forkserver" not in multiprocessing.get_all_start_methods() or not _has_place_for_socket():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["deuteron.library.worker"])
    with _interrupts_held():
        multiprocessing.forkserver.ensure_running()
    return context


def _has_place_for_socket() -> bool:
    """Whether there is a temporary folder whose name leaves room for that of a socket, which such processes need."""
    try:
        return len(os.fsencode(tempfile.gettempdir())) + len(_SOCKET_NAME) <= _MOST_OF_SOCKET_NAME
    except FileNotFoundError:
        return False


def shares(variants: Sequence[Variant], processes: int) -> list[list[Variant]]:
    """What each process does: variants of one source, not so many that the others have nothing to do in the end."""
    sources: dict[str, list[Variant]] = {}
    for variant in variants:
        sources.setdefault(variant.module or variant.source or "", []).append(variant)
    shares = []
    for found in sources.values():
        size = max(1, min(_MAX_SHARE, -(-len(found) // processes)))
        shares += [found[start : start + size] for start in range(0, len(found), size)]
    return sorted(shares, key=len, reverse=True)


def _start(context: multiprocessing.context.BaseContext, share: list[Variant], root: Path) -> _Running:
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=serve, args=(theirs, share, root, dict(os.environ)), daemon=True)
    try:
        with _program_hidden(), _interrupts_held():
            process.start()
    except OSError as error:
        raise UsageError(f"no process that compiles could be started: {error.strerror or error}") from None
    theirs.close()
    return _Running(process, ours, deque(share))


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """While it lasts Ctrl-C waits, and for ever in a process that is started until this is allowed there (`serve`)."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _program_hidden() -> Iterator[None]:
    """While it lasts a process that is started is not told which file to import as `__main__`."""
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


def _received(
    running: dict[Connection, _Running], connection: Connection, pending: deque[list[Variant]]
) -> Iterator[tuple[Variant, Compiled | Mistake]]:
    """What a process has sent; at its end it is forgotten, and another one does what it has left undone."""
    started = running[connection]
    try:
        outcome = connection.recv()
    except EOFError:
        started.process.join()
        del running[connection]
        if started.left:
            pending.append(list(started.left)[1:])
            yield started.left[0], Mistake(f"the compiler ended with status {started.process.exitcode}")
        return
    yield started.left.popleft(), outcome
