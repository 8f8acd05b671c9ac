"""A process that makes and runs cases, and is started anew when one kills it or takes too long.

with Worker() as worker:
    case = worker.call(generate, 7, timeout=20)
    outcomes = worker.run(case, ["cpu"], timeout=20)

Making a case changes its process (the environment, classes that are patched), which threads of a campaign share.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case
from tests.fuzz.executors import Outcome, run_case

REQUESTS_PER_PROCESS = 800
"""What a process keeps of its kernels (code, modules) goes with it."""


class Lost(Exception):
    """The process is gone: the outcome says of what."""

    def __init__(self, outcome: Outcome):
        super().__init__(outcome.message)
        self.outcome = outcome


class Worker:
    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process = None
        self._count = 0
        self._folder = Path(tempfile.mkdtemp(prefix="deuteron-fuzz-"))

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *unused: object) -> None:
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, case: Case, executors: Sequence[str], timeout: float = 60.0, runs: int = 5) -> list[Outcome]:
        """The outcomes; where the process is gone, the last one says of which executor that is, and the rest follow."""
        outcomes, left = [], list(executors)
        while True:
            done, lost = self._attempt(case, left, timeout, runs)
            outcomes += done if not outcomes else done[1:]
            if lost is None:
                return outcomes
            outcomes.append(lost)
            if lost.executor not in left:
                return outcomes
            left = left[left.index(lost.executor) + 1 :]
            if not left:
                return outcomes

    def _attempt(
        self, case: Case, executors: list[str], timeout: float, runs: int
    ) -> tuple[list[Outcome], Outcome | None]:
        outcomes: list[Outcome] = []
        try:
            for outcome in self._answers((_run, case, executors, runs), "frontend", timeout):
                outcomes.append(outcome)
        except Lost as lost:
            return outcomes, lost.outcome
        if any(o.executor == "gpu" and o.kind == "error" for o in outcomes):
            self._end()  # after a fault no launch of the process works
        return outcomes, None

    def call(self, function: Callable[..., Any], *arguments: Any, timeout: float) -> Any:
        """What the function gives in the process."""
        [given] = self._answers((_call, function, *arguments), "generator", timeout)
        return given

    def _answers(self, request: tuple, place: str, timeout: float) -> Iterator[Any]:
        """One after the other; `timeout` is for each of the places that they come from."""
        self._ensure()
        try:
            self._pipe.send(request)
            deadline = time.monotonic() + timeout
            while True:
                if not self._pipe.poll(max(deadline - time.monotonic(), 0)):
                    self._end()
                    raise Lost(Outcome(place, "timeout", f"no result within {timeout:.0f} s"))
                kind, what = self._pipe.recv()
                if kind == "end":
                    return
                if kind == "place":
                    place, deadline = what, time.monotonic() + timeout
                else:
                    yield what
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join(5)
            code, said = self._process.exitcode, self._said()
            self._end()
            raise Lost(Outcome(place, "abort", f"{said}\nthe process ended with {code}")) from None

    def _ensure(self) -> None:
        if self._process is not None and self._count >= REQUESTS_PER_PROCESS:
            self._end()
        if self._process is None:
            ours, theirs = self._context.Pipe()
            self._pipe: Connection = ours
            self._process = self._context.Process(target=_serve, args=(theirs, str(self._folder)), daemon=True)
            self._process.start()
            theirs.close()
            self._count = 0
        self._count += 1

    def _said(self) -> str:
        """The last lines of its error stream, without what LLVM says to everyone."""
        lines = (self._folder / "stderr").read_text(errors="replace").splitlines()
        useful = [line for line in lines if line.strip() and "PLEASE submit a bug" not in line]
        return "\n".join(useful[:2] + useful[-2:])

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


def _end_with_parent() -> None:
    """A kernel that never ends would outlive whoever started this process."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(5)
    os._exit(1)


def _serve(pipe: Connection, folder: str) -> None:
    error_stream = os.open(Path(folder) / "stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(error_stream, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what programs print with other numbers than theirs
    os.environ["DEUTERON_CACHE_DIR"] = str(Path(folder) / "cache")
    os.environ["DEUTERON_ALWAYS_COMPILE"] = os.environ["DEUTERON_VERIFY_EACH"] = "1"
    tempfile.tempdir = folder
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            answer, *arguments = pipe.recv()
        except EOFError:
            return
        for what in answer(lambda place: pipe.send(("place", place)), *arguments):
            pipe.send(("answer", what))
        pipe.send(("end", None))
        for file in Path(folder).glob("fuzzed_*.py"):
            file.unlink()


def _run(announce: Callable[[str], None], case: Case, executors: Sequence[str], runs: int) -> Iterator[Outcome]:
    return run_case(case, executors, announce, runs)


def _call(announce: Callable[[str], None], function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
    yield function(*arguments)
