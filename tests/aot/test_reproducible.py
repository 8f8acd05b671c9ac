"""The same input gives the same bytes: in another folder, in another process, out of a cache that others filled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deuteron.ir.location import import_path

MODULE = """
import deuteron as triton
import deuteron.language as tl


@triton.jit
def halved(x):
    tl.device_assert(x < 100, "too large")
    return x * 0.5
"""
KERNEL = """
import deuteron as triton
import deuteron.language as tl
from parts.halve import halved


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    rows = tl.make_tensor_descriptor(x, [n, 64], [64, 1], [BLOCK, 64])
    tile = halved(rows.load([tl.program_id(0) * BLOCK, 0]))
    places = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(y + places, tl.dot(tile, tl.trans(tile)) if BLOCK == 64 else tile, mask=places < n * 64)
"""


def compile_in(folder: Path, target: str, cache: Path) -> dict[str, bytes]:
    """Write the sources into a folder, compile there, and read what comes of it."""
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    (folder / "parts" / "__init__.py").touch()
    (folder / "parts" / "halve.py").write_text(MODULE)
    (folder / "scale.py").write_text(KERNEL)
    shutil.rmtree(folder / "out", ignore_errors=True)
    command = ["-m", "deuteron.tools.compile", "scale.py", "-n", "scale", "-t", target, "-w", "4", "-o", "out/scale"]
    signature = ["-s", "*fp16:16, *fp32:16, i32, 64", "-g", "cdiv(n, BLOCK)", "-O", "debug=True"]
    environment = {**os.environ, "DEUTERON_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, *command, *signature], cwd=folder, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


@pytest.mark.parametrize("target", ["cpu", "cuda:90"])
def test_the_folder_and_the_cache_change_nothing(target: str, tmp_path: Path):
    first = compile_in(tmp_path / "first", target, tmp_path / "cache")
    assert len(first) == 3
    for name, cache in (("second/place", "other"), ("third", "cache"), ("first", "cache")):
        assert compile_in(tmp_path / name, target, tmp_path / cache) == first
    assert not [name for name, text in first.items() if bytes(tmp_path) in text]


def test_import_path(tmp_path: Path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for folder in ("a", "a/b"):
        (tmp_path / folder / "__init__.py").touch()
    assert import_path(str(tmp_path / "a" / "b" / "c.py")) == "a/b/c.py"
    assert import_path(str(tmp_path / "d.py")) == "d.py"
    assert import_path("<stdin>") == "<stdin>"
