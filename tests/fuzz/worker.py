"""A process that runs cases, and is started anew when one kills it or takes too long.

with Worker() as worker:
    outcomes = worker.run(case, ["cpu"], timeout=20)
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.case import Case
from tests.fuzz.executors import Outcome

CASES_PER_PROCESS = 400
"""What a process keeps of its kernels (code, modules) goes with it."""


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
        self._ensure()
        outcomes: list[Outcome] = []
        place = "frontend"
        try:
            self._pipe.send((case, executors, runs))
            deadline = time.monotonic() + timeout
            while True:
                if not self._pipe.poll(max(deadline - time.monotonic(), 0)):
                    self._end()
                    return outcomes, Outcome(place, "timeout", f"no result within {timeout:.0f} s")
                kind, what = self._pipe.recv()
                if kind == "end":
                    if any(o.executor == "gpu" and o.kind == "error" for o in outcomes):
                        self._end()  # after a fault no launch of the process works
                    return outcomes, None
                if kind == "place":
                    place, deadline = what, time.monotonic() + timeout
                else:
                    outcomes.append(what)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self._process.join(5)
            code, said = self._process.exitcode, self._said()
            self._end()
            return outcomes, Outcome(place, "abort", f"{said}\nthe process ended with {code}")

    def _ensure(self) -> None:
        if self._process is not None and self._count >= CASES_PER_PROCESS:
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
    os.environ["DEUTERON_CACHE_DIR"] = str(Path(folder) / "cache")
    os.environ["DEUTERON_ALWAYS_COMPILE"] = os.environ["DEUTERON_VERIFY_EACH"] = "1"
    tempfile.tempdir = folder
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from tests.fuzz.executors import run_case

    while True:
        try:
            case, executors, runs = pipe.recv()
        except EOFError:
            return
        for outcome in run_case(case, executors, lambda place: pipe.send(("place", place)), runs):
            pipe.send(("outcome", outcome))
        pipe.send(("end", None))
        for file in Path(folder).glob("fuzzed_*.py"):
            file.unlink()
