"""`deuteron inspect`: the report and the texts of a kernel in a file, of an artefact; what can be wrong."""

import json

import pytest
from click.testing import CliRunner

from deuteron.tools.main import main

SOURCE = """
import triton
import triton.language as tl

@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
"""
PRODUCT = """
import triton
import triton.language as tl

@triton.jit
def product(x, y, out):
    i = tl.arange(0, 16)
    tile = i[:, None] * 16 + i[None, :]
    tl.store(out + tile, tl.dot(tl.load(x + tile), tl.load(y + tile)))
"""
KERNEL = ("-n", "scale", "-s", "*fp32:16, *fp32:16, i32:16, 1024", "-w", "4")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.py").write_text(SOURCE)
    return lambda *args: CliRunner().invoke(main, args)


def test_report_on_a_gpu(run):
    result = run("inspect", "scale.py", *KERNEL, "-t", "cuda:90")
    assert result.exit_code == 0, result.output
    assert "scale for cuda:90" in result.stdout and "\x1b" not in result.stdout
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("scale.py:8")]
    assert [row[1:3] for row in rows] == [["load", "16"], ["store", "16"]]


def test_report_on_the_cpu(run):
    result = run("inspect", "scale.py", *KERNEL, "-t", "cpu:x86-64-v3")
    assert result.exit_code == 0 and "256 bits" in result.stdout


def test_report_as_json(run):
    found = json.loads(run("inspect", "scale.py", *KERNEL, "-t", "cuda:90", "--json").stdout)
    assert found["kernel"] == "scale" and found["resources"]["spill_stores"] == 0
    assert [access["num_bytes"] for access in found["accesses"]] == [16, 16]


def test_instructions_are_found_at_the_lines_of_tile_ir(run, tmp_path):
    """Code is called as Python imports it, and tile IR by its path."""
    (tmp_path / "product.py").write_text(PRODUCT)
    types = "*fp16:16, *fp16:16, *fp32:16"
    found = json.loads(run("inspect", "product.py", "-n", "product", "-s", types, "-t", "cuda:80", "--json").stdout)
    assert [dot["count"] for dot in found["dots"]] == [2] and "mma.sync" in found["dots"][0]["instruction"]


def test_a_page_and_its_data(run, tmp_path):
    result = run("inspect", "scale.py", *KERNEL, "-t", "cuda:90", "--html", "scale.html", "--data", "-")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["format"], found["version"], found["kernel"]) == ("deuteron-explorer", 1, "scale")
    assert [stage["name"] for stage in found["stages"]][:4] == ["ttir", "ttgir", "llir", "ptx"]
    assert (tmp_path / "scale.html").read_text().startswith("<!doctype html>")
    printed = run("inspect", "scale.py", *KERNEL, "-t", "cuda:90", "--html", "scale.html", "--json").stdout
    assert json.loads(printed) == found
    result = run("inspect", "scale.py", *KERNEL, "-t", "cuda:90", "--html", "no/scale.html")
    assert result.exit_code == 1 and result.stderr == "error: cannot write 'no/scale.html': No such file or directory\n"


@pytest.mark.parametrize(
    ("target", "stage", "holds"),
    [
        ("cuda:80", "ttir", b"tt.load"),
        ("cuda:80", "ttgir", b"#linear"),
        ("cuda:80", "ptx", b".target sm_80"),
        ("cuda:80", "cubin", b"\x7fELF"),
        ("cpu:x86-64-v3", "asm", b"vmovups"),
    ],
)
def test_stages(run, target, stage, holds):
    result = run("inspect", "scale.py", *KERNEL, "-t", target, "--stage", stage)
    assert result.exit_code == 0 and holds in result.stdout_bytes


def test_blocks_of_a_program(run):
    result = run("inspect", "scale.py", *KERNEL, "-t", "cuda:90", "--num-ctas", "2", "--stage", "ptx")
    assert result.exit_code == 0 and ".reqnctapercluster 2, 1, 1" in result.stdout


def test_the_text_of_a_stage(run, tmp_path):
    text = run("inspect", "scale.py", *KERNEL, "-t", "cuda:90", "--stage", "ttir").stdout
    (tmp_path / "scale.ttir").write_text(text)
    of_text, of_kernel = (
        json.loads(run("inspect", *arguments, "-t", "cuda:90", "--json").stdout)
        for arguments in (("scale.ttir", "-w", "4"), ("scale.py", *KERNEL))
    )
    assert of_text["resources"] == of_kernel["resources"]


def test_the_command_line_of_compile_is_taken(run):
    arguments = ("scale.py", *KERNEL, "-t", "cuda:90", "-g", "cdiv(n, BLOCK)", "-o", "scale", "-on", "scale")
    compiled, inspected = run("compile", *arguments), run("inspect", *arguments)
    assert (compiled.exit_code, inspected.exit_code) == (0, 0)


def test_an_artefact(run, tmp_path):
    run("compile", "scale.py", *KERNEL, "-t", "cuda:90", "-g", "1", "-o", "scale")
    (artefact,) = tmp_path.glob("scale.*.json")
    result = run("inspect", str(artefact))
    assert result.exit_code == 0, result.output
    assert "registers a thread" in result.stdout and "128 in 4 warps" in result.stdout
    assert "Global memory" not in result.stdout


MISTAKES = [
    (("scale.py", *KERNEL, "-t", "cuda:90", "--stage", "obj"), "has no stage 'obj' for cuda:90: it has ttir, ttgir"),
    (("scale.py", *KERNEL, "--stage", "ttir", "--json"), "--stage prints the text of a stage and nothing else"),
    (("scale.py", *KERNEL, "--against", "num_warps=8"), "--against is of a page: say where to write it, --html PATH"),
    (("absent.json",), "cannot read the metadata 'absent.json': No such file or directory"),
    (("scale.py", *KERNEL, "-t", "cuda:90", "-O", "x"), "an option is given as NAME=VALUE, got 'x'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes(run, arguments, message):
    result = run("inspect", *arguments)
    assert result.exit_code == 1 and message in result.stderr


def test_a_kernel_needs_its_signature(run):
    result = run("inspect", "scale.py", "-n", "scale")
    assert result.exit_code == 2 and "Missing option '--signature'" in result.stderr


def test_an_artefact_has_no_stages(run, tmp_path):
    run("compile", "scale.py", *KERNEL, "-t", "cpu:x86-64-v3", "-g", "1", "-o", "scale")
    (artefact,) = tmp_path.glob("scale.*.json")
    assert "scratch memory" in run("inspect", str(artefact)).stdout
    result = run("inspect", str(artefact), "--stage", "llir")
    assert result.exit_code == 1 and "has no texts of stages" in result.stderr


def test_machine_code_takes_a_disassembler(run, monkeypatch):
    monkeypatch.setattr("deuteron.backend.cuda.backend.has_disassembler", lambda: False)
    result = run("inspect", "scale.py", *KERNEL, "-t", "cuda:90", "--stage", "sass")
    assert result.exit_code == 1 and "cubin. It would have sass where nvdisasm is" in result.stderr
