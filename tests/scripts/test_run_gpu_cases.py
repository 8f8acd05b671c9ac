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


@pytest.mark.parametrize("select", ["test_results and rope_backward", "test_joins"])
def test_recorded_launches_agree_on_the_emulator(tmp_path: Path, select: str):
    recorded = script("record", str(tmp_path), "--select", select)
    assert recorded.returncode == 0 and "; 0 not compiled" in recorded.stdout, recorded.stdout + recorded.stderr
    ran = script("run", str(tmp_path), "--on", "emulator")
    total = ran.stdout.splitlines()[-1].split()
    assert ran.returncode == 0 and total[0] == "all" and int(total[1]) > 0 and total[2] == "0", ran.stdout + ran.stderr
