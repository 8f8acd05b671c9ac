"""The example as whoever has installed the package builds it: the command and the CMake package are found on PATH."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ninja")), reason="needs cmake and ninja"),
]


def test_the_example_with_an_installed_package(tmp_path: Path):
    prefix, example = tmp_path / "environment", tmp_path / "example"
    sources = shutil.ignore_patterns(".git", "build", "tests", ".venv*", "__pycache__")
    shutil.copytree(ROOT, tmp_path / "source", ignore=sources)
    # what the tests run in has a Deuteron too, which pip would take away if it did not ignore it
    options = ["--no-deps", "--ignore-installed", "--prefix", prefix]
    command = [sys.executable, "-m", "pip", "install", *options, tmp_path / "source"]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"it cannot be installed here: {installed.stderr[-200:]}")
    shutil.copytree(ROOT / "examples" / "cmake", example)
    packages = sysconfig.get_path("purelib", vars={"base": str(prefix), "platbase": str(prefix)})
    environment = {**os.environ, "PATH": f"{prefix / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": packages}

    def run(*words: object) -> str:
        done = subprocess.run(
            list(map(str, words)), cwd=example, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    assert run("deuteron", "--cmake-dir") == f"{packages}/deuteron/cmake"
    run("cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DKERNEL_TARGETS=cpu")
    cache = (example / "build" / "CMakeCache.txt").read_text()
    assert f"Deuteron_DIR:PATH={prefix}/share/cmake/Deuteron" in cache
    run("cmake", "--build", "build")
    assert run("build/inference", "cpu").endswith(": right")
