"""Programs by torch.compile for CUDA, without a GPU: what Inductor generates compiles, and is right on the emulator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import deuteron

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

TESTS = Path(__file__).parents[1]
PATHS = [Path(deuteron.__file__).parents[1], TESTS, TESTS.parent / "packages" / "triton-deuteron"]
# Of a processor of known speed, to compile a kernel in its fastest configuration: more than twice what the slowest
# takes, a sort whose network is unrolled (0.94 s).
MOST_SECONDS = 2.0


@pytest.mark.parametrize(
    "capability, every",
    [(90, 4), (80, 8), pytest.param(90, 1, marks=pytest.mark.long), pytest.param(80, 1, marks=pytest.mark.long)],
)
def test_right_and_compiled_in_time(tmp_path: Path, seed: int, capability: int, every: int):
    """In a process of its own, in which torch believes in a GPU. The next commit tests other programs."""
    found, sources = tmp_path / "outcomes.json", os.pathsep.join(map(str, PATHS))
    command = [sys.executable, "-m", "torch_compile.cuda", str(capability), "--json", str(found)]
    command += ["--every", str(every), "--first", str(seed % every)]
    environment = {
        **os.environ,
        "PYTHONPATH": sources,
        "DEUTERON_VERIFY_EACH": "0",  # as users compile
        "DEUTERON_CACHE_DIR": str(tmp_path / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
    }
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.exists(), result.stderr
    outcomes = json.loads(found.read_text())
    assert len(outcomes) >= 120 // every
    failed = {outcome["program"]: outcome["error"] for outcome in outcomes if outcome["error"]}
    assert not failed, "\n\n".join(f"{name}:\n{error}" for name, error in failed.items())
    slow = {
        (outcome["program"], kernel): seconds
        for outcome in outcomes
        for kernel, seconds in outcome["seconds"].items()
        if min(seconds) > MOST_SECONDS
    }
    assert not slow
