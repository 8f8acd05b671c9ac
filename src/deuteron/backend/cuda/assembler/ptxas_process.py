"""A process of ptxas. It may start before there is PTX, and takes no more memory than there is.

    process = AssemblerProcess([ptxas, "--gpu-name=sm_90a", "-v"])     loads itself: 8 ms, while LLVM works
    process.finish(ptx)                Outcome(status=0, report="ptxas info ...", image=b"\\x7fELF...")

ptxas reads its input twice: to compile it and, with line numbers, to put its text into the cubin. So the path that it
is given is first a link to its standard input, where it waits, and then a file with the text. If it comes to open the
path when that file is there already, it does not read what it is sent.

Eleven megabytes of PTX take ptxas 18 GB. What a machine has not would be taken from other processes; ptxas that may
not have it says so and ends.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from weakref import finalize

from deuteron.errors import UsageError

TEMPORARY_FOLDER = "TMPDIR names the folder for temporary files."
_STANDARD_INPUT = "/dev/stdin"
# Its heap grows by 32 MB at once, in pages of 2 MB where the system has them: of the 3,300 to 8,300 pages of 4 KB that
# the kernels of benchmarks/compile_peer.py fault in, 800 to 1,300 are left, and 10 to 18 % less time is taken.
_HEAP = f"glibc.malloc.hugetlb=1:glibc.malloc.top_pad={32 << 20}"
_MEMORY = Path("/proc/meminfo")
# Of a container: what it may have, and what it has.
_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


class Outcome(NamedTuple):
    """How ptxas ended, what it said, and the cubin, if it wrote one."""

    status: int
    report: str
    image: bytes | None


class AssemblerProcess:
    """One process, for one text. It ends when nobody has this object any more."""

    def __init__(self, command: Sequence[str | Path]):
        try:
            folder = tempfile.TemporaryDirectory(prefix="deuteron-")
            self._source, self._target = Path(folder.name, "kernel.ptx"), Path(folder.name, "kernel.cubin")
            self._source.symlink_to(_STANDARD_INPUT)
        except OSError as error:
            raise _unwritable(error) from error
        self._process = subprocess.Popen(
            [*command, self._source, "-o", self._target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        _limit_memory(self._process.pid)
        self.stop = finalize(self, _stop, self._process, folder)

    def finish(self, ptx: str) -> Outcome:
        """Give it the text, and wait for it."""
        try:
            written = self._source.with_suffix(".text")
            written.write_text(ptx)
            written.replace(self._source)
        except FileNotFoundError:
            pass  # of a folder that somebody cleaned up: it has standard input
        except OSError as error:
            raise _unwritable(error) from error
        _, report = self._process.communicate(ptx)
        image = self._target.read_bytes() if self._target.exists() else None
        self.stop()
        return Outcome(self._process.returncode, report, image)


def _environment() -> dict[str, str]:
    """Ours, and how its heap grows, unless somebody has said that: of one that is said twice the last counts."""
    said = os.environ.get("GLIBC_TUNABLES")
    return {**os.environ, "GLIBC_TUNABLES": f"{_HEAP}:{said}" if said else _HEAP}


def _unwritable(error: OSError) -> UsageError:
    place = f" into '{error.filename}'" if error.filename else ""
    return UsageError(f"what ptxas reads cannot be written{place}: {error.strerror}. {TEMPORARY_FOLDER}")


def _stop(process: subprocess.Popen, folder: tempfile.TemporaryDirectory) -> None:
    if process.poll() is None:
        process.kill()
        process.communicate()
    folder.cleanup()


def available_memory() -> int | None:
    """The bytes that a process may take without others losing theirs, of this machine or container; None: not known."""
    found = [_free_of_group(Path(most), Path(used)) for most, used in _GROUPS]
    with suppress(OSError, StopIteration, ValueError):
        line = next(line for line in _MEMORY.read_text().splitlines() if line.startswith("MemAvailable:"))
        found.append(int(line.split()[1]) * 1024)
    return min((count for count in found if count is not None), default=None)


def _free_of_group(most: Path, used: Path) -> int | None:
    try:
        return int(most.read_text()) - int(used.read_text())
    except (OSError, ValueError):  # no group, or one that may have all: "max"
        return None


def _limit_memory(process: int) -> None:
    available = available_memory()
    if available is None:
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = available if most == resource.RLIM_INFINITY else min(available, most)
    with suppress(ProcessLookupError, PermissionError, ValueError):
        resource.prlimit(process, resource.RLIMIT_AS, (limit, limit))
