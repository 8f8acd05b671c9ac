"""Debug information of kernels in C: lines of the Python source, in a unit beside those of the C compiler."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from aot.workspace import Workspace
from click.testing import CliRunner

from deuteron.aot.assembly import assembly_block
from deuteron.aot.line_table import _signed, _unsigned
from deuteron.aot.link import link_kernels
from deuteron.tools.main import main

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def fetched(p, i, m):
    return tl.load(p + i, m)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, fetched(x, i, m) + fetched(y, i, m), m)
"""
PROGRAM = """
#include "linked.h"

int main(void) {
  static float x[200], y[200], out[200];
  return add_default(0, x, y, out, 101) + add(0, x, y, out, 101, 1) + (out[100] != 0);
}
"""


@pytest.fixture
def sources(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, with two kernels as C, a function that chooses, and a program."""
    folder = workspace.folder
    (folder / "kernels").mkdir()
    (folder / "kernels" / "add.py").write_text(KERNEL)
    monkeypatch.setenv("DEUTERON_LINE_INFO", "1")
    for block in (64, 128):
        where = ["-n", "add", "-s", f"*fp32, *fp32, *fp32, i32, {block}", "-g", "cdiv(n, BLOCK)", "-t", "cpu"]
        command = ["compile", str(folder / "kernels" / "add.py"), *where, "-o", str(folder / "add")]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 0, result.output
    link_kernels(sorted(folder.glob("add.*.h")), folder / "linked")
    (folder / "main.c").write_text(PROGRAM)
    return folder


def built(folder: Path, *flags: str) -> Path:
    program = folder / "program"
    subprocess.run(["gcc", "-Wall", "-Werror", *flags, *sorted(folder.glob("*.c")), "-o", program], check=True)
    subprocess.run([program], check=True)
    return program


def lines_of(program: Path) -> list[int]:
    said = subprocess.run(["objdump", "--dwarf=decodedline", program], capture_output=True, text=True, check=True)
    return [int(line) for line in re.findall(r"^add\.py +(\d+) +0x", said.stdout, re.MULTILINE)]


@pytest.mark.skipif(not shutil.which("objdump"), reason="needs objdump")
@pytest.mark.parametrize("flags", ["", "-g -O2", "-g -gdwarf-4", "-g -flto", "-g -fPIC -pie"])
def test_the_lines_are_there(sources: Path, flags: str):
    found = lines_of(built(sources, *flags.split()))
    assert {8, 15} <= set(found) <= {0, *range(6, 16)}
    assert found.count(15) >= 2, "of two kernels"


@pytest.mark.skipif(not shutil.which("gdb"), reason="needs gdb")
@pytest.mark.parametrize("flags", ["", "-g"])
def test_gdb_stops_at_a_line(sources: Path, flags: str):
    program = built(sources, *flags.split())
    commands = ["break add.py:15", "run", "bt 4", "info source"]
    given = [word for command in commands for word in ("-ex", command)]
    said = subprocess.run(
        ["gdb", "-q", "-batch", "-iex", "set debuginfod enabled off", *given, program],
        cwd=sources / "kernels",
        capture_output=True,
        text=True,
        env={**os.environ, "DEUTERON_NUM_THREADS": "1"},
        check=False,
    ).stdout
    if "ptrace: Operation not permitted" in said:
        pytest.skip("processes cannot be traced here")
    assert re.search(r"Breakpoint 1\S*, \w*kernel_add_\w+\.program \(\) at add\.py:15\n15\s+tl\.store", said), said
    assert re.search(r"in deuteron_run_\w+", said) and "Source language is c" in said, said


def test_without_it_there_is_none(sources: Path, monkeypatch: pytest.MonkeyPatch):
    assert all("debug_info" in path.read_text() for path in sources.glob("add.*.c"))
    monkeypatch.delenv("DEUTERON_LINE_INFO")
    where = ["-n", "add", "-s", "*fp32, *fp32, *fp32, i32, 64", "-g", "1", "-t", "cpu", "-o", str(sources / "plain")]
    assert CliRunner().invoke(main, ["compile", str(sources / "kernels" / "add.py"), *where]).exit_code == 0
    (plain,) = sources.glob("plain.*.c")
    assert "debug_" not in plain.read_text()


# Line, and how many instructions are there.
PLACES = [(3, 1), (300, 1500), (7, 1)]
FAR = "".join(f"\t.loc\t1 {line} 2 is_stmt {line % 2}\n" + "\tnop\n" * count for line, count in PLACES)


def test_places_that_are_far_apart(tmp_path: Path):
    """An advance has two bytes: where that may be too few an address is told anew."""
    text = f'\t.text\nk:\n.Lfunc_begin0:\n\t.file\t1 "." "a.py"\n{FAR}\tret\n.Lfunc_end0:\n\t.size\tk, .Lfunc_end0-k\n'
    block = assembly_block(text + '\t.section\t.debug_line,"",@progbits\n.Lline_table_start0:\n', "k")
    assert block.count(".quad") == 3, "the first, one that is far, the end"
    (tmp_path / "k.c").write_text(f"{block}\nint other(int x) {{ return x; }}\n")
    subprocess.run(["gcc", "-g", "-c", tmp_path / "k.c", "-o", tmp_path / "k.o"], check=True)
    said = subprocess.run(
        ["objdump", "--dwarf=decodedline", tmp_path / "k.o"], capture_output=True, text=True, check=True
    )
    assert re.findall(r"^a\.py +(\d+|-) +(\w+)", said.stdout, re.MULTILINE) == [
        *[("3", "0"), ("300", "0x1"), ("7", "0x5dd"), ("-", "0x5df")],
    ]


def test_leb128():
    assert [_unsigned(value) for value in (0, 127, 128, 300)] == [[0], [127], [128, 1], [172, 2]]
    assert [_signed(value) for value in (0, -1, 63, 64, -64, -65, 297)] == [
        *[[0], [127], [63], [192, 0], [64], [191, 127], [169, 2]],
    ]
