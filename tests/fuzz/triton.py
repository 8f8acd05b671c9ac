"""The executor `triton`: what Triton's frontend makes of a program, compiled for the CPU and run.

    python -m tests.fuzz --executors triton [--triton-python PYTHON]

It is the only one that does not begin with our frontend, so that it finds what that takes for something else than
Triton does. Triton is in an environment of its own; each worker keeps one process of it (scripts/triton_ttir.py).
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.triton_environment import triton_python
from deuteron.compiler import ASTSource, IRSource
from deuteron.errors import UsageError
from tests.fuzz.case import HEADER, Case

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "triton_ttir.py"
PYTHON_VARIABLE = "DEUTERON_FUZZ_TRITON_PYTHON"
# Programs of what both have: Triton 3.9 has no block pointers, and what it leaves to PTX is not text that we read.
# Short ones, since Triton refuses a program for one statement.
OF_BOTH = {"without": ("block pointer", "assembly", "map"), "lengths": (2, 3, 5, 8)}
# Names that are somewhere else in Triton.
RENAMED = {"tl.libdevice.": "tl.extra.libdevice."}


def triton_source(case: Case, source: ASTSource) -> IRSource:
    """The ttir of Triton. Raises UsageError with what Triton says where it refuses the program."""
    with tempfile.TemporaryDirectory(prefix="fuzzed_") as folder:
        request = request_of(case, source, Path(folder))
        process = _process()
        process.stdin.write(f"{json.dumps(request)}\n")
        process.stdin.flush()
        process.stdout.readline()
        refusal = Path(request["answer"]).read_text().strip()
        if refusal:
            raise UsageError(f"Triton: {_last_words(refusal)}")
        return IRSource.from_text(Path(request["path"]).read_text(), "ttir")


def _last_words(refusal: str) -> str:
    """Without the mark that is under the place."""
    return next(line for line in reversed(refusal.splitlines()) if line.strip(" ^"))


def request_of(case: Case, source: ASTSource, folder: Path) -> dict[str, Any]:
    """What scripts/triton_ttir.py has to know, with the program as a file in a folder."""
    text = HEADER + case.source
    for ours, theirs in RENAMED.items():
        text = text.replace(ours, theirs)
    (folder / "kernel.py").write_text(text)
    return {
        "file": str(folder / "kernel.py"),
        "kernel": "kernel",
        "signature": source.signature,
        "constexprs": {},
        "attrs": [[list(place), pairs] for place, pairs in source.attrs.items()],
        "options": {"num_warps": case.options.get("num_warps", 4)},
        "path": str(folder / "kernel.ttir"),
        "answer": str(folder / "answer"),
    }


@functools.cache
def _process() -> subprocess.Popen[str]:
    """Ends with this process, which holds the other end of its input."""
    python = os.environ.get(PYTHON_VARIABLE) or triton_python()
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [python, SCRIPT, "serve"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=_environment()
    )


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
