"""What a run compiles is written down, for another process to compile it; what a program's kernels are called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import UsageError
from deuteron.runtime import manifest
from deuteron.runtime.manifest import read_manifest

PROGRAM = """
import numpy as np
import deuteron
import deuteron.language as tl

@deuteron.jit
def helper(x):
    return 2 * x

@deuteron.jit
def double(x, FN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, FN(tl.load(x + i)))

def main():
    x = np.arange(16, dtype=np.float32)
    print(double[(1,)](x, helper, 16).hash, double.cache_key)

if __name__ == "__main__":
    main()
"""


@deuteron.jit
def fill(out, VALUE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.full((BLOCK,), VALUE, tl.float32))


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_RECORD", str(tmp_path / "runs" / "manifest.json"))
    monkeypatch.setenv("DEUTERON_TARGET", "cpu")
    monkeypatch.setattr(manifest, "_recorder", manifest._Recorder())
    monkeypatch.setattr(manifest, "_warned", set())
    fill.device_caches.clear()
    return tmp_path / "runs" / "manifest.json"


def launch(value, **options):
    fill[(1,)](np.zeros(8, np.float32), value, 8, **options)


def test_every_specialisation_is_written_once(path):
    for value in (1, 2.5, 1):
        launch(value)
    launch(1, num_warps=8)
    fill.device_caches.clear()
    launch(1)
    found = read_manifest(path)
    assert len(found) == len(path.read_text().splitlines()) == 3
    assert {(each.kernel, each.module, each.is_main) for each in found} == {("fill", __name__, False)}
    assert {Path(each.file) for each in found} == {Path(__file__)}
    assert [dict(each.asked["options"]) for each in found] == [{}, {}, {"num_warps": {"value": 8}}]


def test_a_later_run_adds_what_is_new(path, monkeypatch):
    launch(1)
    with path.open("a") as file:
        file.write('{"half of a line')
    monkeypatch.setattr(manifest, "_recorder", manifest._Recorder())
    fill.device_caches.clear()
    launch(1)
    launch(2)
    assert len(read_manifest(path)) == 2 and len(path.read_text().splitlines()) == 3


def test_files_in_the_folder_of_the_manifest_move_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DEUTERON_RECORD", str(Path(__file__).parent / "absent.json"))
    assert manifest._relative(Path(__file__), Path(__file__).parent / "absent.json") == Path(__file__).name
    assert manifest._relative(Path(__file__), tmp_path / "absent.json") == __file__


def test_threads(path):
    threads = [threading.Thread(target=lambda: [launch(value) for value in range(5)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(path.read_text().splitlines()) == 5


def test_a_constexpr_without_a_text_is_warned_of(path):
    class Odd:
        def __repr__(self):
            return "odd"

    with pytest.warns(RuntimeWarning, match="fill was compiled for a constexpr of which there is no text"):
        manifest.record(path, fill, (("constexpr", Odd, Odd()),), {}, deuteron.Target("cpu", "native"))


def test_a_manifest_that_cannot_be_written_is_warned_of(path, tmp_path):
    (tmp_path / "runs").write_text("")
    with pytest.warns(RuntimeWarning, match="cannot be written: (Not a directory|File exists)"):
        launch(1)


def test_what_is_no_manifest_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot read '.*/absent.json': No such file or directory"):
        read_manifest(tmp_path / "absent.json")
    (tmp_path / "other.json").write_text("[1, 2]\n")
    with pytest.raises(UsageError, match="is no manifest, such as DEUTERON_RECORD=other.json has"):
        read_manifest(tmp_path / "other.json")
    (tmp_path / "empty.json").write_text("")
    assert read_manifest(tmp_path / "empty.json") == []


WAYS = {
    "run": ["ops/scaling.py"],
    "module": ["-m", "ops.scaling"],
    "imported": ["-c", "import sys; sys.path.insert(0, 'ops'); import scaling; scaling.main()"],
    "imported of its package": ["-c", "import ops.scaling; ops.scaling.main()"],
    "by the command": ["main.py", "run", "ops/scaling.py"],
}


def test_a_kernel_has_one_key_however_its_file_is_run(tmp_path):
    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "scaling.py").write_text(PROGRAM)
    (tmp_path / "main.py").write_text("from deuteron.tools.main import main; main()")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DEUTERON_CACHE_DIR": str(tmp_path / "cache")}
    environment |= {"DEUTERON_RECORD": str(tmp_path / "manifest.json"), "DEUTERON_TARGET": "cpu"}
    said = {}
    for name, arguments in WAYS.items():
        found = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert found.returncode == 0, found.stderr
        said[name] = found.stdout
    assert said["run"] == said["imported"] == said["by the command"]
    assert said["module"] == said["imported of its package"]
    listed = [json.loads(line) for line in (tmp_path / "manifest.json").read_text().splitlines()]
    assert {(each["module"], each["is_main"], each["file"]) for each in listed} == {
        ("scaling", True, "ops/scaling.py"),
        ("scaling", False, "ops/scaling.py"),
        ("ops.scaling", False, "ops/scaling.py"),
    }
