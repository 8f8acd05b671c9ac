"""Descriptors as parameters of C functions: an address, sizes, strides."""

from pathlib import Path

import pytest
from aot.workspace import CXX17, Workspace
from click.testing import CliRunner

from deuteron.aot.signature import parse_signature
from deuteron.errors import UsageError
from deuteron.tools.main import main

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def transpose(x, y, alpha):
    block: tl.constexpr = x.block_shape
    row, column = tl.program_id(0) * block[0], tl.program_id(1) * block[1]
    y.store([column, row], x.load([row, column]).T * alpha)
"""

PROGRAM = r"""
#include "aot/transpose.h"
#include <cstdio>
#include <vector>

int main() {
  const int rows = 45, columns = 20, stride = 24;
  std::vector<float> x(rows * stride), y(stride * 48, -7.0f);
  for (int i = 0; i < rows * stride; i++)
    x[i] = (float)i;
  int wrong = transpose(nullptr, x.data(), rows, columns, stride, y.data(), columns, rows, 48, 2.0f, 0) != 0;
  for (int i = 0; i < stride; i++)
    for (int j = 0; j < 48; j++)
      wrong += y[i * 48 + j] != (i < columns && j < rows ? 2.0f * x[j * stride + i] : -7.0f);
  std::printf("%d\n", wrong);
}
"""


class Param:
    name, is_constexpr = "x", False


def run(*args: str) -> None:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output


def test_compile_link_build_run(workspace: Workspace):
    folder: Path = workspace.folder
    (folder / "transpose.py").write_text(KERNEL)
    signature = "tensordesc<fp32[16, 32]>, tensordesc<fp32[32,16]>, fp32"
    grid = "cdiv(x_shape_0, 16), cdiv(x_shape_1, 32)"
    options = ["-n", "transpose", "-s", signature, "-g", grid, "-o", str(folder / "aot/transpose"), "-t", "cpu"]
    run("compile", str(folder / "transpose.py"), *options)
    run("link", *map(str, folder.glob("aot/*.h")), "-o", str(folder / "aot/transpose"))
    for path in folder.glob("aot/*.c"):
        path.rename(folder / path.name)
    program = workspace.build(PROGRAM, CXX17, ["-O1", f"-I{folder}", f"-I{folder / 'aot'}"])
    assert program.run() == "0\n"


def test_the_signature():
    argument = parse_signature("tensordesc<fp16[128, 64], nan>", [Param], "k").arguments[0]
    assert argument.type == "tensordesc<fp16[128,64],nan>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tensordesc<fp16>", "Expected a descriptor such as tensordesc<fp16\\[128,64\\]>"),
        ("tensordesc<half[128]>", "Unknown type 'half'"),
        ("tensordesc<fp16[128]>:1", "only integers can be hinted :1"),
    ],
)
def test_errors(text: str, message: str):
    with pytest.raises(UsageError, match=message):
        parse_signature(text, [Param], "k")
