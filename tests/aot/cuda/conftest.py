"""The folder in which a test emits kernels for CUDA and builds programs, with a driver of its own."""

from pathlib import Path

import pytest
from aot.cuda.fake_gpu import FakeGpu


@pytest.fixture
def gpu(tmp_path: Path) -> FakeGpu:
    return FakeGpu(tmp_path)
