"""Accesses that C functions check against the sizes that they are given: refused in the words of Python's launches."""

from pathlib import Path

import numpy as np
import pytest
from aot.workspace import CXX17, Workspace
from click.testing import CliRunner

from deuteron.aot.link import link_kernels
from deuteron.aot.load import load_module
from deuteron.errors import AssertionFailure, MemoryAccessError
from deuteron.tools.main import main

KERNELS = """
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


@triton.jit
def gathered(x, y, out, n, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    i = row[:, None] * 4 + tl.arange(0, 4)
    p = tl.where(i < n, x + i, y + i)
    tl.device_assert(n > 3, "n is\\tsmall?")
    tl.atomic_add(out + i, tl.load(p))
"""
STRICT = [*CXX17, "-Wconversion"]
SANITIZED = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover"]

# Prints a line for each call: n, and the elements of x, y and out that it is told of; -1 is not known.
PROGRAM = r"""
#include "linked.h"
#include <stdio.h>
#include <string.h>

static uint64_t bytes(int count) { return count < 0 ? UINT64_MAX : 4 * (uint64_t)count; }

static void call(int n, int x_count, int y_count, int out_count) {
  static float x[500], y[500], out[500];
  char text[600];
  memset(out, 0, sizeof out);
  deuteron_status status =
      NAME_checked(NULL, x, y, out, n, bytes(x_count), bytes(y_count), bytes(out_count), 0, text, sizeof text);
  char *end = strchr(text, '\n');
  if (end)
    *end = 0;
  printf("%d %s\n", (int)status, text);
}

int main(void) {
CALLS
  return 0;
}
"""


def emitted(workspace: Workspace, name: str, monkeypatch: pytest.MonkeyPatch, *more: str, blocks: str = "64") -> Path:
    """A kernel as C that checks; the Python file."""
    source = workspace.folder / "kernels.py"
    source.write_text(KERNELS)
    monkeypatch.setenv("DEUTERON_CHECK", "bounds")
    for block in blocks.split():
        where = ["-n", name, "-s", f"*fp32, *fp32, *fp32, i32, {block}", "-g", "cdiv(n, BLOCK)", "-t", "cpu", *more]
        result = CliRunner().invoke(main, ["compile", str(source), *where, "-o", str(workspace.folder / name)])
        assert result.exit_code == 0, result.output
    monkeypatch.delenv("DEUTERON_CHECK")
    link_kernels(sorted(workspace.folder.glob(f"{name}.*.h")), workspace.folder / "linked")
    return source


def printed(workspace: Workspace, name: str, calls: list[str]) -> list[str]:
    made = "\n".join(f"  call({arguments});" for arguments in calls)
    program = PROGRAM.replace("NAME", name).replace("CALLS", made)
    return workspace.build(program, STRICT, SANITIZED).run(DEUTERON_NUM_THREADS="1").splitlines()


def raised(
    source: Path, name: str, sizes: list[int], n: int, monkeypatch: pytest.MonkeyPatch, **options: object
) -> str:
    """The first line of what a launch from Python of arrays of these sizes raises."""
    monkeypatch.setenv("DEUTERON_NUM_THREADS", "1")
    kernel = getattr(load_module(source), name)
    arrays = [np.zeros(size, np.float32) for size in sizes]
    with pytest.raises((MemoryAccessError, AssertionFailure)) as found:
        kernel[(-(-n // 64),)](*arrays, n, BLOCK=64, check="bounds", **options)
    return str(found.value).splitlines()[0].rpartition("/")[2]


def test_an_access_is_named_as_in_python(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    source = emitted(workspace, "add", monkeypatch)
    calls = ["101, 200, 100, 200", "101, 101, 101, 101", "101, 101, 101, 77", "500, -1, 500, 500"]
    lines = printed(workspace, "add", calls)
    assert lines[0] == "700 " + raised(source, "add", [200, 100, 200], 101, monkeypatch)
    assert "byte offset 400 of y, which has 400 bytes" in lines[0] and lines[0].startswith("700 kernels.py:8:12: error")
    assert lines[1] == "0 "
    assert lines[2] == "700 " + raised(source, "add", [101, 101, 77], 101, monkeypatch)
    assert lines[3] == "0 "


def test_tiles_and_assertions(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    """An access that may be of several arguments, of lanes of two axes; an assertion of the same kernel."""
    source = emitted(workspace, "gathered", monkeypatch, "-O", "debug=True")
    lines = printed(workspace, "gathered", ["5, 500, 500, 255", "2, 500, 500, 500", "5, 5, 256, 256"])
    assert lines[0] == "700 " + raised(source, "gathered", [500, 500, 255], 5, monkeypatch, debug=True)
    assert "Out-of-bounds atomic rmw: lane (63, 3) of program (0, 0, 0)" in lines[0]
    expected = raised(source, "gathered", [500, 500, 500], 2, monkeypatch, debug=True)
    assert lines[1] == "710 " + expected and "n is\tsmall?" in expected
    assert lines[2] == "0 "


REFUSED = r"""
#include "linked.h"
#include <stdio.h>

int main(void) {
  float x[64] = {0}, out[65] = {0};
  char text[40], *odd = (char *)out + 1;
  printf("%d ", (int)add_checked(NULL, x, x, odd, 9, 256, 256, 200, DEUTERON_ANY_ALGO, text, sizeof text));
  printf("%s|", text);
  printf("%d ", (int)add_checked(NULL, x, x, x, 9, 256, 256, 256, 2, text, sizeof text));
  printf("%s|", text);
  printf("%d ", (int)add_checked(NULL, x, x, x, 9, 256, 256, 256, -1, text, sizeof text));
  printf("%s|", text);
  printf("%d ", (int)add_checked(NULL, x, x, x, 65, 256, 256, 256, 1, NULL, 0));
  printf("%d", (int)add_checked(NULL, x, x, x, 0, 0, 0, 0, 1, text, 1));
  return 0;
}
"""


NULL_POINTER = r"""
#include "linked.h"
#include <stdio.h>

int main(void) {
  float x[64] = {0}, out[64];
  char text[600];
  printf("%d ", (int)add_checked(NULL, x, NULL, out, 9, 256, 0, 256, DEUTERON_ANY_ALGO, text, sizeof text));
  printf("%s", text);
  return 0;
}
"""


def test_a_null_pointer_is_named(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    """It was "byte offset -140731970404448 of x": the array that is nearest to address 0."""
    emitted(workspace, "add", monkeypatch)
    said = workspace.build(NULL_POINTER, STRICT, SANITIZED).run()
    assert "accesses 4 bytes at byte offset 0 of y, which is null and has 0 bytes" in said


def test_what_is_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    emitted(workspace, "add", monkeypatch, blocks="64 128")
    said = workspace.build(REFUSED, STRICT, SANITIZED).run()
    none = "1 there is no algorithm of this number"
    assert said == f"716 kernels.py:15:5: error: Misaligned stor|{none}|{none}|700 0"


def test_without_it_there_is_no_such_function(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    emitted(workspace, "add", monkeypatch)
    checked = {path: path.read_text() for path in workspace.folder.glob("add.*.[ch]")}
    monkeypatch.setenv("DEUTERON_CHECK", "none")
    where = ["-n", "add", "-s", "*fp32, *fp32, *fp32, i32, 64", "-g", "cdiv(n, BLOCK)", "-t", "cpu"]
    command = ["compile", str(workspace.folder / "kernels.py"), *where, "-o", str(workspace.folder / "add")]
    assert CliRunner().invoke(main, command).exit_code == 0
    for path, text in checked.items():
        assert "check_add" in text and "check_add" not in path.read_text()
