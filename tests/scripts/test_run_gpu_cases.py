"""The script that compares a GPU with the interpreter, with the emulator in its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "run_gpu_cases.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})


@pytest.mark.parametrize(("file", "select"), [("test_results.py", "rope_backward"), ("test_joins.py", "")])
def test_recorded_launches_agree_on_the_emulator(tmp_path: Path, file: str, select: str):
    recorded = script("record", str(tmp_path), "--files", file, "--select", select)
    assert recorded.returncode == 0 and "; 0 problems" in recorded.stdout, recorded.stdout + recorded.stderr
    ran = script("run", str(tmp_path), "--on", "emulator")
    total = ran.stdout.splitlines()[-1].split()
    assert ran.returncode == 0 and total[0] == "all" and int(total[1]) > 0 and total[2] == "0", ran.stdout + ran.stderr
