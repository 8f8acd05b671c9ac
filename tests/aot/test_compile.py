"""A Python kernel, through the commands, to a program that runs it: names, bytes, values, and what failure leaves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from aot.workspace import CXX17, Workspace
from click.testing import CliRunner

import deuteron
from deuteron.aot.load import load_module
from deuteron.compiler import ASTSource
from deuteron.compiler import compile as compile_source
from deuteron.tools.main import main

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def scale(x, y, alpha, n, BLOCK: tl.constexpr, NEGATE: tl.constexpr, MODE: tl.constexpr, TYPE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(TYPE) * alpha
    if NEGATE:
        value = -value
    if MODE == "plus, one":
        value += 1.0
    tl.store(y + i, value, mask=i < n)
"""

ALGORITHMS = ["64, True, 'plus, one', fp32", "128, False, None, tl.float64"]

PROGRAM = r"""
#include "aot/scale.h"
#include <cstdio>
#include <vector>

int main() {
  int wrong = 0;
  for (int algo = 0; algo < scale_get_num_algos(); algo++)
    for (int n : {0, 1, 63, 64, 65, 1000}) {
      std::vector<float> x(n + 8), y(n + 8, -77.0f);
      for (int i = 0; i < n + 8; i++)
        x[i] = 0.5f * (float)i;
      wrong += scale(nullptr, x.data(), y.data(), 0.125f, n, algo) != DEUTERON_SUCCESS;
      for (int i = 0; i < n + 8; i++)
        wrong += y[i] != (i >= n ? -77.0f : algo == 0 ? 1.0f - x[i] * 0.125f : x[i] * 0.125f);
    }
  std::printf("%d %d\n", scale_get_num_algos(), wrong);
}
"""


def run(*args: str) -> str:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output
    return result.stderr


def compile_scale(folder: Path, constexprs: str, *further: str, types: str = "*fp32:16, *fp32, fp32, i32") -> str:
    (folder / "scale.py").write_text(KERNEL)
    signature = f"{types}, {constexprs}"
    arguments = ["-n", "scale", "-s", signature, "-g", "cdiv(n, BLOCK)", "-o", str(folder / "aot/scale")]
    return run("compile", str(folder / "scale.py"), *arguments, *further)


def test_compile_link_build_run(workspace: Workspace):
    folder = workspace.folder
    for constexprs in ALGORITHMS:
        compile_scale(folder, constexprs)
        compile_scale(folder, constexprs, types="*fp32, *fp32, fp32, i32")
    headers = [str(path) for path in sorted((folder / "aot").glob("*.h"))]
    order = sorted(headers, key=lambda path: "'plus, one'" not in Path(path).read_text())
    run("link", *order, "-o", str(folder / "aot/scale"))
    for path in (folder / "aot").iterdir():
        path.rename(folder / path.name)
    program = workspace.build(PROGRAM.replace("aot/", ""), CXX17, ["-g", "-fsanitize=address,undefined"])
    assert program.run(DEUTERON_NUM_THREADS="3") == "2 0\n"


def test_says_which_files_and_which_target(tmp_path: Path):
    said = compile_scale(tmp_path, ALGORITHMS[0]).splitlines()
    assert said[0].startswith("target: cpu:")
    written = sorted(str(path) for path in (tmp_path / "aot").iterdir())
    assert sorted(line.removeprefix("wrote ") for line in said[1:]) == written
    assert "target: " not in compile_scale(tmp_path, ALGORITHMS[0], "-t", "cpu:x86-64")


def test_differing_requests_have_differing_names(tmp_path: Path):
    for further in [(), ("-t", "cpu:native"), ("-O", "opt_level=1"), ("-w", "2"), ("-ns", "1"), ("--num-ctas", "2")]:
        compile_scale(tmp_path, ALGORITHMS[0], *further)
    compile_scale(tmp_path, ALGORITHMS[0], types="*fp16, *fp32, fp32, i32")
    assert len(list((tmp_path / "aot").glob("*.c"))) == 7


def test_two_processes_emit_the_same_bytes(tmp_path: Path):
    (tmp_path / "scale.py").write_text(KERNEL)
    found = []
    for seed in ("0", "1"):
        out = tmp_path / seed
        command = [sys.executable, "-m", "deuteron.tools.compile", "scale.py", "-n", "scale"]
        command += [
            "-s",
            f"*fp32:16, *fp32, fp32, i32, {ALGORITHMS[0]}",
            "-g",
            "cdiv(n, BLOCK)",
            "-o",
            str(out / "scale"),
        ]
        environment = {**os.environ, "PYTHONHASHSEED": seed, "DEUTERON_ALWAYS_COMPILE": "1"}
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
        found.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_a_failed_compile_leaves_earlier_files_as_they_were(tmp_path: Path):
    compile_scale(tmp_path, ALGORITHMS[0])
    before = {path: path.read_bytes() for path in (tmp_path / "aot").iterdir()}
    (tmp_path / "broken.py").write_text(KERNEL.replace("tl.arange(0, BLOCK)", "tl.arange(0, BLOCK + 1)"))
    arguments = ["-n", "scale", "-s", f"*fp32:16, *fp32, fp32, i32, {ALGORITHMS[0]}", "-g", "cdiv(n, BLOCK)"]
    result = CliRunner().invoke(
        main, ["compile", str(tmp_path / "broken.py"), *arguments, "-o", str(tmp_path / "aot/scale")]
    )
    assert result.exit_code == 1
    assert {path: path.read_bytes() for path in (tmp_path / "aot").iterdir()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path):
    (tmp_path / "aot").mkdir(mode=0o500)
    (tmp_path / "scale.py").write_text(KERNEL)
    arguments = ["-n", "scale", "-s", f"*fp32, *fp32, fp32, i32, {ALGORITHMS[0]}", "-g", "1"]
    result = CliRunner().invoke(
        main, ["compile", str(tmp_path / "scale.py"), *arguments, "-o", str(tmp_path / "aot/x")]
    )
    assert (result.exit_code, list((tmp_path / "aot").iterdir())) == (1, [])
    assert "cannot write" in result.stderr and "Permission denied" in result.stderr


def scale_text(folder: Path, stage: str, target: str, **constexprs) -> Path:
    """The kernel as the text of a stage."""
    (folder / "scale.py").write_text(KERNEL)
    kernel = load_module(folder / "scale.py").scale
    types = {"x": "*fp32", "y": "*fp32", "alpha": "fp32", "n": "i32"}
    source = ASTSource(kernel, types, constexprs, {(0,): [["tt.divisibility", 16]]})
    path = folder / f"scale{constexprs['BLOCK']}.{stage}"
    path.write_text(compile_source(source, target, {"num_warps": 1}).asm[stage])
    return path


def test_the_text_of_a_stage(workspace: Workspace):
    folder, dtype = workspace.folder, deuteron.language.float32
    for block, negate, mode in ((64, True, "plus, one"), (128, False, None)):
        text = scale_text(folder, "ttir", "cpu:x86-64-v3", BLOCK=block, NEGATE=negate, MODE=mode, TYPE=dtype)
        run("compile", str(text), "-g", f"cdiv(n, {block})", "-o", str(folder / "scale"), "-t", "cpu")
    headers = list(folder.glob("*.h"))
    records = [json.loads(path.with_suffix(".json").read_text()) for path in headers]
    order = sorted(zip(records, headers, strict=True), key=lambda pair: pair[0]["grid"], reverse=True)
    assert [[param["hint"] for param in record["params"]] for record in records] == [[16, None, None, None]] * 2
    run("link", *(str(header) for _, header in order), "-o", str(folder / "scale"))
    program = workspace.build(PROGRAM.replace("aot/", ""), CXX17, ["-g", "-fsanitize=address,undefined"])
    assert program.run(DEUTERON_NUM_THREADS="3") == "2 0\n"


def test_the_text_of_a_later_stage_is_for_its_warps(tmp_path: Path):
    constexprs = {"BLOCK": 64, "NEGATE": True, "MODE": None, "TYPE": deuteron.language.float32}
    text = scale_text(tmp_path, "ttgir", "cuda:90", **constexprs)
    arguments = ["compile", str(text), "-g", "cdiv(n, 64)", "-o", str(tmp_path / "out/scale"), "-t", "cuda:90"]
    run(*arguments)
    assert len(list((tmp_path / "out").glob("*.c"))) == 1
    result = CliRunner().invoke(main, [*arguments, "-w", "4"])
    assert result.exit_code == 1 and "the ttgir is for num_warps=1, and num_warps=4 was asked for" in result.stderr
    result = CliRunner().invoke(main, [*arguments[:-1], "cuda:80"])
    assert result.exit_code == 1 and "the ttgir is for cuda:90, and cuda:80 was asked for" in result.stderr


@pytest.mark.parametrize(
    ("name", "further", "message"),
    [
        ("scale64.ttir", ["-s", "*fp32"], "leave --signature away"),
        ("scale64.ttir", ["-n", "add"], "has no kernel 'add': it has scale"),
        ("scale64.llir", [], "C is made from .ttir or .ttgir"),
        ("broken.ttir", [], "broken.ttir:1:9: error"),
        ("absent.ttir", [], "cannot read"),
    ],
)
def test_texts_that_are_refused(tmp_path: Path, name: str, further: list[str], message: str):
    constexprs = {"BLOCK": 64, "NEGATE": True, "MODE": None, "TYPE": deuteron.language.float32}
    scale_text(tmp_path, "ttir", "cpu", **constexprs), scale_text(tmp_path, "llir", "cpu", **constexprs)
    (tmp_path / "broken.ttir").write_text("nothing of the kind")
    arguments = ["compile", str(tmp_path / name), "-g", "1", "-o", str(tmp_path / "out/scale"), "-t", "cpu", *further]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and message in result.stderr and "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()
