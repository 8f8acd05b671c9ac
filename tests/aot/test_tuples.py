"""Tuples as parameters: what they hold are parameters of the C function, by name."""

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
def scale(out, args, sizes, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < sizes[0]
    tl.store(out + i, tl.load(args.x + i, mask=mask) * args.factor + sizes[1], mask=mask)
"""

PROGRAM = r"""
#include "aot/scale.h"
#include <cstdio>
#include <vector>

int main() {
  std::vector<float> x(100), y(100, -7.0f);
  for (int i = 0; i < 100; i++)
    x[i] = (float)i;
  int wrong = scale(nullptr, y.data(), x.data(), 2.0f, 90, 0) != 0;
  for (int i = 0; i < 100; i++)
    wrong += y[i] != (i < 90 ? 2.0f * i + 3 : -7.0f);
  std::printf("%d\n", wrong);
}
"""


class Param:
    def __init__(self, name: str, is_constexpr: bool = False):
        self.name, self.is_constexpr = name, is_constexpr


def run(*args: str) -> None:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output


def test_compile_link_build_run(workspace: Workspace):
    folder: Path = workspace.folder
    (folder / "scale.py").write_text(KERNEL)
    signature = "*fp32, (x=*fp32, factor=fp32), (i32, 3), 64"
    arguments = ["-n", "scale", "-s", signature, "-g", "cdiv(sizes_0, BLOCK)", "-o", str(folder / "aot/scale")]
    run("compile", str(folder / "scale.py"), *arguments, "-t", "cpu")
    header = next(folder.glob("aot/*.h"))
    assert "deuteron_const_ptr args_x, float args_factor, int32_t sizes_0)" in " ".join(header.read_text().split())
    run("link", str(header), "-o", str(folder / "aot/scale"))
    for path in folder.glob("aot/*.c"):
        path.rename(folder / path.name)
    program = workspace.build(PROGRAM, CXX17, ["-O1", f"-I{folder}", f"-I{folder / 'aot'}"])
    assert program.run() == "0\n"


def test_the_types_of_a_nested_tuple():
    found = parse_signature("(*fp16:16, (i32:1, 'a, (b'), 2), (1, 2)", [Param("x"), Param("C", True)], "kernel")
    assert found.types == {"x": ("*fp16", ("constexpr", "constexpr"), "constexpr"), "C": "constexpr"}
    assert found.constexprs == {"x_1_0": 1, "x_1_1": "a, (b", "x_2": 2, "C": (1, 2)}
    assert found.attrs == {"x_0": [["tt.divisibility", 16]]}
    assert [argument.index for argument in found.arguments] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(x=*fp32, i32)", "--signature:1:1: error: parameter 'x': all items of a tuple have names, or none"),
        ("(i32)", "--signature:1:1: error: parameter 'x': a tuple of one is (i32,), and without one leave the paren"),
        ("(i32, i31)", "--signature:1:7: error: parameter 'x[1]': Unknown type 'i31'. Did you mean"),
        ("(n=i32, m=(i31,))", "--signature:1:12: error: parameter 'x.m[0]': Unknown type 'i31'. Did you mean"),
        ("(i32, i32) i32", "--signature:1:1: error: parameter 'x': expected a tuple such as (*fp32, i32), got"),
    ],
)
def test_errors(text: str, message: str):
    with pytest.raises(UsageError) as raised:
        parse_signature(text, [Param("x")], "kernel")
    assert str(raised.value).startswith(message)
