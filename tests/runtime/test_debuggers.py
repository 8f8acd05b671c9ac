"""What gdb and perf are told of kernels on the CPU."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl
from deuteron.backend.llvm import debuggers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ELF")

PROGRAM = """
import numpy as np
import deuteron as triton
import deuteron.language as tl


@triton.jit
def scale(x_ptr, out_ptr, n):
    for i in range(n):
        x = tl.load(x_ptr + i)
        tl.store(out_ptr + i, 2 * x)


x = np.ones(4, np.float32)
scale[(1,)](x, x, 4, line_info=True)
"""


@triton.jit
def double(x_ptr):
    tl.store(x_ptr, 2 * tl.load(x_ptr))


def listed() -> int:
    """How many objects gdb is told of."""
    found, (first, _) = 0, debuggers._gdb()
    address = first.first
    while address:
        found += 1
        address = debuggers._Entry.from_address(address).next
    return found


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")


def test_the_list_has_those_that_are_loaded_and_have_lines(monkeypatch):
    before = listed()
    kernels = [double.warmup(np.ones(1, dtype), grid=(1,), line_info=True) for dtype in (np.float32, np.int32, np.int8)]
    for kernel in kernels:
        kernel.load()
    double[(1,)](np.ones(1, np.float64))
    assert listed() == before + 3
    for dropped, left in ((1, 2), (0, 1), (2, 0)):
        kernels[dropped].close()
        gc.collect()
        assert listed() == before + left
    lines = Path(f"/tmp/perf-{os.getpid()}.map").read_text().splitlines()
    assert len([line for line in lines if line.endswith(" double")]) >= 3
    monkeypatch.setenv("DEUTERON_LINE_INFO", "1")
    double[(1,)](np.ones(1, np.int16))
    assert listed() == before + 1


@pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")
def test_gdb_stops_at_a_line_of_a_kernel(tmp_path):
    (tmp_path / "scaling.py").write_text(PROGRAM)
    commands = (
        "handle SIGSTOP nostop noprint nopass",
        "set breakpoint pending on",
        "break scaling.py:11",
        "run scaling.py",
        "backtrace 2",
        "kill",
    )
    arguments = [part for command in commands for part in ("-ex", command)]
    env = {**os.environ, "DEUTERON_CACHE_DIR": str(tmp_path / "cache"), "DEBUGINFOD_URLS": ""}
    run = subprocess.run(
        ["gdb", "-nx", "-batch", *arguments, sys.executable], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert "scaling.py:11" in run.stdout, run.stdout + run.stderr
    assert "tl.store(out_ptr + i, 2 * x)" in run.stdout, run.stdout + run.stderr
