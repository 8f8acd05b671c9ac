"""Arguments that a kernel takes to be apart: what headers say of them, what functions that know sizes do."""

import re

import pytest
from aot.test_checked import KERNELS, SANITIZED, STRICT, emitted
from aot.workspace import Workspace
from click.testing import CliRunner

from deuteron.tools.main import main

SIGNATURE = "*fp32, *fp32, *fp32, i32, 64"
IN_PLACE = """
@triton.jit
def add_to_rows(x, x_stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    places = tl.arange(0, ROWS)[:, None] * x_stride + tl.arange(0, COLUMNS)[None, :]
    tl.store(x + places, tl.load(x + places) + 1)
"""


def compiled(workspace, name, signature, *more):
    """The header of a kernel."""
    (workspace.folder / "kernels.py").write_text(KERNELS + IN_PLACE)
    where = ["-n", name, "-s", signature, "-g", "1", "-o", str(workspace.folder / name), *more]
    result = CliRunner().invoke(main, ["compile", str(workspace.folder / "kernels.py"), *where])
    assert result.exit_code == 0, result.output
    (header,) = workspace.folder.glob(f"{name}.*.h")
    return re.sub(r"\s+", " ", header.read_text())


@pytest.mark.parametrize("target", ["cpu", "cuda:80"])
def test_headers_say_which_arrays_must_not_overlap(workspace: Workspace, target):
    said = "must not overlap; those with (1) may begin at one address: x and out (1), y and out (1)."
    assert said in compiled(workspace, "add", SIGNATURE, "-t", target)


def test_headers_say_which_rows_must_not_overlap(workspace: Workspace):
    steps = "8 elements in steps of x_stride, 16 elements in steps of 1, less than 4294967296 in all."
    said = f"may be at one place in x: {steps}"
    assert said in compiled(workspace, "add_to_rows", "*fp32, i32, 8, 16", "-t", "cpu")


@pytest.mark.parametrize("target", ["cpu", "cuda:80"])
def test_what_takes_any_arrays_says_nothing(workspace: Workspace, target):
    for name, signature in (("add", SIGNATURE), ("add_to_rows", "*fp32, i32, 8, 16")):
        assert "overlap" not in compiled(workspace, name, signature, "-t", target, "-O", "may_alias=True")


PROGRAM = r"""
#include "linked.h"
#include <stdio.h>

int main(void) {
  static float all[256];
  char text[200];
  printf("%d ", (int)add_checked(NULL, all, all + 64, all, 64, 256, 256, 256, 0, text, sizeof text));
  printf("%d ", (int)add_checked(NULL, all, all + 64, all + 65, 64, 256, UINT64_MAX, 256, 0, text, sizeof text));
  printf("%d ", (int)add_checked(NULL, all, all + 64, all + 65, 64, 256, 256, 256, 0, text, sizeof text));
  printf("%s", text);
  return 0;
}
"""


def test_what_knows_sizes_looks(workspace: Workspace, monkeypatch):
    emitted(workspace, "add", monkeypatch)
    first, unknown, overlapping, text = workspace.build(PROGRAM, STRICT, SANITIZED).run().split(" ", 3)
    assert (first, unknown, overlapping) == ("0", "0", "1")
    assert text.startswith("error: arguments 'y' and 'out' of kernel 'add' overlap")
    assert text.endswith(". Compile it with the option may_alias")
