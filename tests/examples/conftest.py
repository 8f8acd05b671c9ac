"""What a newcomer does, in a process of its own.

def test_something(shell, tmp_path):
    printed = shell("deuteron run add.py", tmp_path)
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

TIMEOUT_SECONDS = 500


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], str]:
    """Runs a command line, with `deuteron` and `python` those of this environment; returns what it printed."""
    folder = tmp_path_factory.mktemp("bin")
    python = shlex.quote(sys.executable)
    program = "import sys; sys.argv[0] = 'deuteron'; from deuteron.tools.main import main; main()"
    for name, arguments in (("deuteron", f"-c {shlex.quote(program)}"), ("python", "")):
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {python} {arguments} "$@"\n')
        script.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "DEUTERON_TARGET": "cpu",
        "DEUTERON_INTERPRET": "0",
    }

    def run(command: str, cwd: Path) -> str:
        result = subprocess.run(
            ["sh", "-ec", command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run


def _first_found(*names: str) -> str:
    found = next((name for name in names if shutil.which(name)), None)
    if found is None:
        pytest.skip(f"needs one of {', '.join(names)}")
    return found


@pytest.fixture
def compilers() -> dict[str, str]:
    """CC and CXX, of those there are."""
    return {"CC": _first_found("cc", "gcc", "clang"), "CXX": _first_found("c++", "g++", "clang++")}
