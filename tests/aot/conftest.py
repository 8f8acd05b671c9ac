"""The folder in which a test emits kernels and builds programs."""

from pathlib import Path

import pytest
from aot.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)
