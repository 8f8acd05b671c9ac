"""What a header says of pointers and algorithms, and two headers in one file."""

import subprocess
from pathlib import Path

import pytest
from aot.workspace import ADD_ALPHA, C99, CXX17, Workspace
from click.testing import CliRunner

from deuteron.aot.link import link_kernels
from deuteron.aot.naming import value_identifier
from deuteron.tools.main import main

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
"""


def compiles(folder: Path, text: str, compiler: list[str] = C99) -> str:
    """What the compiler says of a file; empty where it takes it."""
    (folder / "use.c").write_text(text)
    return subprocess.run([*compiler, "-fsyntax-only", "use.c"], cwd=folder, capture_output=True, text=True).stderr


def test_what_no_kernel_writes_is_const(tmp_path: Path):
    (tmp_path / "add.py").write_text(KERNEL)
    for values in ("64", "128"):
        command = ["compile", str(tmp_path / "add.py"), "-n", "add", "-s", f"*fp32, *fp32, *fp32, i32, {values}"]
        result = CliRunner().invoke(main, [*command, "-g", "1", "-t", "cpu", "-o", str(tmp_path / "add")])
        assert result.exit_code == 0, result.output
    link_kernels(sorted(tmp_path.glob("add.*.h")), tmp_path / "linked")
    for header in (*tmp_path.glob("add.*.h"), tmp_path / "linked.h"):
        text = " ".join(header.read_text().split())
        assert "deuteron_const_ptr x, deuteron_const_ptr y, deuteron_ptr out, int32_t n" in text
    use = '#include "linked.h"\nint use(const float *x, float *y) { return (int)add(0, x, x, y, 3, add_BLOCK_64_'
    for compiler in (C99, CXX17):
        assert compiles(tmp_path, use + "warps1_stages3); }\n", compiler) == ""
    assert "const" in compiles(tmp_path, use.replace("x, x, y", "x, x, x") + "warps1_stages3); }", CXX17)


def test_algorithms_have_constants(workspace: Workspace):
    headers = [
        workspace.emit(ADD_ALPHA, f"*fp32, fp32, i32, {block}", "n") for block in (256, -3, 0.5, "'a'", "1", "'1'")
    ]
    link_kernels(headers, workspace.folder / "linked")
    text = (workspace.folder / "linked.h").read_text()
    named = [line.strip() for line in text.splitlines() if line.startswith("  add_alpha_BLOCK")]
    assert named[:4] == [
        "add_alpha_BLOCK_256_warps1_stages3 = 0,",
        "add_alpha_BLOCK_m3_warps1_stages3 = 1,",
        "add_alpha_BLOCK_0p5_warps1_stages3 = 2,",
        "add_alpha_BLOCK_a_warps1_stages3 = 3,",
    ]
    assert len({line.partition(" =")[0] for line in named}) == 6
    assert compiles(workspace.folder, '#include "linked.h"\nint a[add_alpha_BLOCK_m3_warps1_stages3];\n') == ""


@pytest.mark.parametrize(
    "value, text",
    [("-3", "m3"), ("0.5", "0p5"), ("'relu'", "relu"), ("fp16", "fp16"), ("(1, -2)", "1__m2"), ("1e-05", "1em05")],
)
def test_value_identifier(value: str, text: str):
    assert value_identifier(value) == text


def test_two_headers_of_one_file_name_are_both_seen(tmp_path: Path):
    for name in ("first", "second"):
        place = Workspace(tmp_path / name)
        link_kernels([place.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "n", name=name)], tmp_path / name / "kernels")
    both = '#include "first/kernels.h"\n#include "second/kernels.h"\n#include "first/kernels.h"\n'
    assert compiles(tmp_path, both + "int (*use[])(void) = {first_get_num_algos, second_get_num_algos};\n") == ""


def test_two_headers_that_declare_one_name_are_an_error(tmp_path: Path):
    for folder, block in (("first", 128), ("second", 256)):
        place = Workspace(tmp_path / folder)
        link_kernels([place.emit(ADD_ALPHA, f"*fp32, fp32, i32, {block}", "n")], tmp_path / folder / "kernels")
    said = compiles(tmp_path, '#include "first/kernels.h"\n#include "second/kernels.h"\n')
    assert "another header, made from other sources, declares add_alpha" in said
