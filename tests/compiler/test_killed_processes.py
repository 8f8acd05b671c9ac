"""A cache folder that many processes use, which are killed while they write to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


def run(seed, **asked):
    arguments = [f"--{name}={number}" for name, number in {**asked, "seed": seed}.items()]
    command = [sys.executable, "-m", "compiler.killed_processes", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, f"{found.stdout}\n{found.stderr}"
    return json.loads(found.stdout)


def test_nothing_is_lost_or_half_written(seed):
    found = run(seed, processes=4, kernels=30, rounds=3)
    assert found["killed"] and found["launched"] >= 30


@pytest.mark.long
def test_nothing_is_lost_or_half_written_in_many_rounds(seed):
    found = run(seed, processes=8, kernels=200, rounds=50)
    assert found["killed"] >= 200
