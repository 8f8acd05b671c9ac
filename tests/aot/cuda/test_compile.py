"""A Python kernel, compiled for GPUs by the command, in a program built without CUDA."""

import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from aot.workspace import CXX17
from click.testing import CliRunner

from deuteron.aot.targets import select_target
from deuteron.options import Target
from deuteron.tools.main import main

needs_ptxas = pytest.mark.skipif(not (shutil.which("ptxas") or find_spec("nvidia")), reason="there is no ptxas")

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def scale(x, alpha, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * alpha, mask=i < n)
"""

PROGRAM = """
#include "aot/linked.h"
#include <cstdio>

int main() {
  float *x = nullptr;
  std::puts(deuteron_status_string(scale_default(nullptr, reinterpret_cast<CUdeviceptr>(x), 0.5f, 1000)));
}
"""


def run(*args: str) -> str:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    return result.stderr


def compile_scale(folder: Path, *further: str) -> None:
    (folder / "scale.py").write_text(KERNEL)
    options = ["-n", "scale", "-s", "*fp32:16, fp32, i32, 128", "-g", "cdiv(n, BLOCK)", "-w", "2"]
    run("compile", str(folder / "scale.py"), *options, "-o", str(folder / "aot" / "scale"), *further)


@needs_ptxas
def test_a_program_for_two_architectures(tmp_path: Path):
    for target in ("cuda:80", "cuda:90"):
        compile_scale(tmp_path, "-t", target)
    headers = sorted(map(str, tmp_path.glob("aot/*.h")))
    run("link", *headers, "-o", str(tmp_path / "aot" / "linked"))
    (tmp_path / "main.cpp").write_text(PROGRAM)
    sources = [str(tmp_path / "main.cpp"), *map(str, tmp_path.glob("aot/*.c"))]
    subprocess.run([*CXX17, f"-I{tmp_path}", *sources, "-o", tmp_path / "program"], check=True)
    environment = {"LD_LIBRARY_PATH": str(tmp_path)}
    printed = subprocess.run([tmp_path / "program"], capture_output=True, text=True, env=environment, check=True).stdout
    assert len(headers) == 2
    assert printed in ("no driver\n", "success\n", "illegal address\n", "unsupported device\n")


@needs_ptxas
def test_what_is_in_the_files(tmp_path: Path):
    compile_scale(tmp_path, "-t", "cuda:90")
    (source,) = tmp_path.glob("aot/*.c")
    record = json.loads(source.with_suffix(".json").read_text())
    assert (record["target"], record["device_rank"], record["num_warps"]) == ("cuda:90", 90, 2)
    text = source.read_text()
    assert "    127,69,76,70," in text  # an ELF file
    assert (
        f'"deuteron_{record["digest"]}_kernel_{record["function"]}", 64, {record["shared"]}, 90, DEUTERON_FITS_EXACTLY,'
        in text
    )


@needs_ptxas
def test_ptx_for_later_devices(tmp_path: Path):
    compile_scale(tmp_path, "-t", "cuda:80")
    compile_scale(tmp_path, "-t", "cuda:80+ptx")
    plain, both = sorted(tmp_path.glob("aot/*.c"), key=lambda path: path.stat().st_size)
    assert plain.stem.split(".")[1] != both.stem.split(".")[1]
    assert "deuteron_ptx" not in plain.read_text()
    image = both.read_text().split("deuteron_ptx[] = {")[1].split("}")[0]
    text = bytes(int(number) for number in image.split(",") if number.strip()).decode()
    assert ".target sm_80" in text and text.endswith("\0")
    assert f"deuteron_{json.loads(both.with_suffix('.json').read_text())['digest']}_kernel_scale" in text


@needs_ptxas
def test_the_same_kernel_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In the same folder: its name is in the line table of the machine code."""
    texts = []
    for name in ("one", "two"):
        monkeypatch.setenv("DEUTERON_CACHE_DIR", str(tmp_path / f"cache-{name}"))
        compile_scale(tmp_path, "-t", "cuda:80")
        texts.append({path.name: path.read_bytes() for path in (tmp_path / "aot").iterdir()})
    assert texts[0] == texts[1]


def test_without_a_target_it_is_the_machines_gpu(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("deuteron.aot.targets.machine_target", lambda: Target("cuda", 86))
    assert select_target(None) == Target("cuda", 86)
