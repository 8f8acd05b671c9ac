"""Compiles variants on another machine: with the project's sources sent along, in a process of its own.

    project = packed(root)                                     bytes: the Python files of the project
    compile_share(variants, project, expected)                 there: an outcome for each variant, Compiled or Mistake

What comes back is as if it had been compiled here, or it is a Mistake: `expected` are the versions of this machine's
Deuteron, ptxas and other tools by target, and those of the other machine have to be the same. Installed packages that
kernels import have to be there.
"""

from __future__ import annotations

import io
import pickle
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from deuteron.errors import UsageError
from deuteron.library.staleness import versions
from deuteron.library.variants import Variant
from deuteron.library.worker import Compiled, Mistake, outcome_of

MAX_PROJECT_BYTES = 64 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)

Versions = Mapping[str, tuple[str, ...]]
Outcome = Compiled | Mistake


def packed(root: Path) -> bytes:
    """The Python files under a folder, without hidden ones, as bytes that are equal for equal files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as project:
        for path in sorted(_python_files(root)):
            project.writestr(zipfile.ZipInfo(path.relative_to(root).as_posix(), _EPOCH), path.read_bytes())
            if content.tell() > MAX_PROJECT_BYTES:
                raise UsageError(f"'{root}' has more than {MAX_PROJECT_BYTES >> 20} MB of Python files to send along")
    return content.getvalue()


def _python_files(root: Path) -> Iterator[Path]:
    for path in root.rglob("*.py"):
        if not any(part.startswith(".") for part in path.relative_to(root).parts):
            yield path


def expected_versions(variants: Sequence[Variant]) -> dict[str, tuple[str, ...]]:
    return {target: versions(target) for target in sorted({variant.target for variant in variants})}


def compile_share(variants: Sequence[Variant], project: bytes, expected: Versions) -> list[Outcome]:
    """The outcome of each; one at which the compiler ended is a Mistake, and the others are compiled all the same."""
    if differing := [target for target, known in expected.items() if versions(target) != tuple(known)]:
        what = f"other versions of Deuteron, Python or its tools for {', '.join(differing)}"
        return [Mistake(f"{platform.node()} has {what} than this machine")] * len(variants)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="deuteron-") as folder:
        with zipfile.ZipFile(io.BytesIO(project)) as files:
            files.extractall(folder)
        while len(outcomes) < len(variants):
            outcomes += _compiled_in_process(variants[len(outcomes) :], Path(folder))
    return [_without_folder(outcome, folder) for outcome in outcomes]


def _without_folder(outcome: Outcome, folder: str) -> Outcome:
    """A mistake with names of files as they are in the project."""
    if isinstance(outcome, Compiled):
        return outcome
    return Mistake(outcome.message.replace(f"{Path(folder).resolve()}/", "").replace(f"{folder}/", ""), outcome.keys)


def _compiled_in_process(variants: Sequence[Variant], folder: Path) -> list[Outcome]:
    """As many outcomes as the process came to, and one more where it ended before its time."""
    command = [sys.executable, "-m", "deuteron.library.remote"]
    done = subprocess.run(command, cwd=folder, input=pickle.dumps(list(variants)), stdout=subprocess.PIPE)
    outcomes = list(_unpickled(done.stdout))
    if len(outcomes) < len(variants):
        outcomes.append(Mistake(f"the compiler ended with status {done.returncode} on {platform.node()}"))
    return outcomes


def _unpickled(content: bytes) -> Iterator[Outcome]:
    """What was written before the end, whole or not."""
    stream = io.BytesIO(content)
    try:
        while True:
            yield pickle.load(stream)
    except (EOFError, pickle.UnpicklingError):
        return


def main() -> None:
    """Read variants, and write the outcome of each; the current folder is the project's. Prints of kernels' files are
    no part of it."""
    variants, out = pickle.load(sys.stdin.buffer), sys.stdout.buffer
    sys.stdout = sys.stderr
    for variant in variants:
        out.write(pickle.dumps(outcome_of(variant, Path.cwd())))
        out.flush()


if __name__ == "__main__":
    main()
