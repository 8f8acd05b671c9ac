"""The folder in which a test emits kernels and builds programs, and what the default target is."""

from pathlib import Path

import pytest
from aot.workspace import Workspace

from deuteron.options import Target


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `-t` the target is the CPU, also where the tests run on a machine with a GPU."""
    monkeypatch.setattr("deuteron.aot.targets.machine_target", lambda: Target("cpu", "native", 1))
