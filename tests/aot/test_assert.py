"""An assertion that fails is a status in C, and the next call works."""

from pathlib import Path

from aot.workspace import Workspace
from click.testing import CliRunner

from deuteron.tools.main import main

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def reciprocal(out, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=1.0)
    tl.device_assert(value != 0, "a divisor")
    tl.store(out + i, 1 / value, mask=i < n)
"""

PROGRAM = r"""
#include "reciprocal.h"
#include <stdio.h>

int main(void) {
  float x[100], y[100];
  for (int bad = 99; bad < 101; bad++) {
    for (int i = 0; i < 100; i++)
      x[i] = (float)(i != bad), y[i] = -1;
    deuteron_status status = reciprocal(NULL, y, x, 100);
    printf("%d %s %g %g\n", status, deuteron_status_string(status), y[0], y[99]);
  }
}
"""


def test_a_status(workspace: Workspace):
    folder: Path = workspace.folder
    (folder / "reciprocal.py").write_text(KERNEL)
    where = [
        "-n",
        "reciprocal",
        "-s",
        "*fp32, *fp32, i32, 64",
        "-g",
        "cdiv(n, BLOCK)",
        "-o",
        str(folder / "reciprocal"),
    ]
    result = CliRunner().invoke(
        main, ["compile", str(folder / "reciprocal.py"), *where, "-t", "cpu", "-O", "debug=True"]
    )
    assert result.exit_code == 0, result.output
    header = next(folder.glob("*.h"))
    program = PROGRAM.replace("reciprocal.h", header.name).replace("reciprocal(NULL", f"{_function(header)}(NULL")
    lines = workspace.build(program).run(DEUTERON_NUM_THREADS="1").splitlines()
    assert lines == ["710 assert 1 -1", "0 success 1 1"]


def _function(header: Path) -> str:
    return header.stem.replace(".", "_")


def test_the_option_check_is_refused(tmp_path: Path):
    """A C function is not told how large its arrays are; the one that is told is made by DEUTERON_CHECK."""
    (tmp_path / "reciprocal.py").write_text(KERNEL)
    where = ["-n", "reciprocal", "-s", "*fp32, *fp32, i32, 64", "-g", "1", "-o", str(tmp_path / "out"), "-t", "cpu"]
    result = CliRunner().invoke(main, ["compile", str(tmp_path / "reciprocal.py"), *where, "-O", "check=bounds"])
    assert result.exit_code != 0
    assert "-O check=bounds: a C function is not told how large its arrays are" in result.output
    assert not list(tmp_path.glob("out*"))
