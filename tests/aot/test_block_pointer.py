"""Kernels with block pointers, and with rows gathered through a descriptor, from C."""

from pathlib import Path

from aot.workspace import CXX17, Workspace
from click.testing import CliRunner

from deuteron.tools.main import main

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def mixed(x, rows, table, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # y = the transposed of x, in steps of BN columns, plus rows of a table
    start = tl.program_id(0) * BM
    source = tl.make_block_ptr(x, (M, N), (N, 1), (start, 0), (BM, BN), (1, 0))
    target = tl.make_block_ptr(y, (N, M), (M, 1), (0, start), (BN, BM), (1, 0))
    added = table.gather(tl.load(rows + tl.arange(0, BN)), 0)
    for _ in range(0, N, BN):
        tile = tl.load(source, boundary_check=(0, 1)).T + added
        tl.store(target, tile, boundary_check=(0, 1))
        source, target = tl.advance(source, (0, BN)), tl.advance(target, (BN, 0))
"""

PROGRAM = r"""
#include "aot/mixed.h"
#include <cstdio>
#include <vector>

int main() {
  const int M = 21, N = 11, at[8] = {3, -1, 0, 4, 1, 9, 2, 2};
  alignas(16) float table[4 * 16];
  std::vector<float> x(M * N), y(N * M, -7.0f);
  for (int i = 0; i < M * N; i++)
    x[i] = (float)i;
  for (int i = 0; i < 4 * 16; i++)
    table[i] = 1000.0f * i;
  int wrong = mixed(nullptr, x.data(), (int *)at, table, 4, 16, 16, y.data(), M, N, 0) != 0;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) {
      int row = at[i % 8];
      float added = row >= 0 && row < 4 ? table[row * 16 + j % 16] : 0.0f;
      wrong += y[i * M + j] != x[j * N + i] + added;
    }
  std::printf("%d\n", wrong);
}
"""


def run(*args: str) -> None:
    result = CliRunner().invoke(main, args)
    assert result.exit_code == 0, result.output


def test_compile_link_build_run(workspace: Workspace):
    folder: Path = workspace.folder
    (folder / "mixed.py").write_text(KERNEL)
    signature = "*fp32, *i32, tensordesc<fp32[1, 16]>, *fp32, i32, i32, 16, 8"
    options = ["-n", "mixed", "-s", signature, "-g", "cdiv(M, 16)", "-o", str(folder / "aot/mixed"), "-t", "cpu"]
    run("compile", str(folder / "mixed.py"), *options)
    run("link", *map(str, folder.glob("aot/*.h")), "-o", str(folder / "aot/mixed"))
    for path in folder.glob("aot/*.c"):
        path.rename(folder / path.name)
    program = workspace.build(PROGRAM, CXX17, ["-O1", f"-I{folder}", f"-I{folder / 'aot'}"])
    assert program.run() == "0\n"
