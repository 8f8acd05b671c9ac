"""Processes that compile for a build: one that cannot be started, one whose build was killed."""

import errno
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from deuteron.errors import UsageError
from deuteron.library import processes, worker

SERVED = """
import multiprocessing, sys
from pathlib import Path
from deuteron.library import worker
if __name__ == "__main__":
    read, written = multiprocessing.Pipe(duplex=False)
    read.close()
    worker.outcome_of = lambda variant, root: variant
    worker.serve(written, [1, 2], Path.cwd(), {})
"""


def test_a_process_that_compiles_for_a_build_that_was_killed_says_nothing():
    done = subprocess.run([sys.executable, "-c", SERVED], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_that_cannot_be_started(tmp_path: Path):
    """It had been said of the output that it cannot be written."""

    class Refused(multiprocessing.context.SpawnContext):
        class Process(multiprocessing.context.SpawnProcess):
            def start(self):
                raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    with pytest.raises(UsageError, match="no process that compiles could be started: Connection refused"):
        processes._start(Refused(), [], tmp_path)


@pytest.mark.parametrize("executable", ["/root-only/python", "", None])
def test_processes_are_forked_where_python_cannot_be_started(executable: str | None, monkeypatch: pytest.MonkeyPatch):
    """Of an embedded Python, or a user who may not execute its file: no process that compiles could be started."""
    monkeypatch.setattr(sys, "executable", executable)
    assert processes._context().get_start_method() == "fork"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError("Could not find 'libllvmlite.so'."), "error: libllvmlite.so: failed to map segment"),
        (OSError(errno.ENOSPC, "No space left on device", "x.ptx"), "error: 'x.ptx': No space left on device"),
        (MemoryError("512 bytes"), "error: there is not enough memory: 512 bytes"),
        (MemoryError(), "error: there is not enough memory"),
    ],
)
def test_what_a_machine_lacks_is_a_line(error: Exception, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """With `ulimit -v` of 256 MB it was the traceback of a process, and that the compiler ended with status 1."""

    def fail(*_: object) -> None:
        try:
            raise OSError("libllvmlite.so: failed to map segment")
        except OSError as first:
            raise error from first

    monkeypatch.setattr(worker, "compile_variant", fail)
    assert worker.outcome_of(None, tmp_path) == worker.Mistake(text)
