"""Kernels for another architecture than this machine's: built by its compiler, run by an emulator, where they are."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from aot.workspace import STRICT
from click.testing import CliRunner

import deuteron
import deuteron.language as tl
from deuteron.backend.llvm.targets import architecture_of, machine
from deuteron.errors import LaunchError
from deuteron.tools.main import main

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def mix(x, y, out, n, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, BLOCK)[None, :]
    places = tl.program_id(0) * 16 * BLOCK + rows * BLOCK + columns
    a = tl.load(x + places, mask=places < n, other=1.0).to(tl.float32)
    b = tl.load(y + rows * 16 + tl.arange(0, 16)[None, :])
    tl.store(out + places, tl.dot(b, tl.exp(a)) + tl.sum(a, 1)[:, None], mask=places < n)
"""
# What newer processors have instructions for: half precision, bfloat16, dots, atomics, rounding, population counts.
MANY = """
import triton
import triton.language as tl


@triton.jit
def many(h, b, f, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    rows = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(h + i, tl.load(h + i) * tl.load(h + i + BLOCK) + 1)
    tl.store(b + i, (tl.load(f + i) * tl.load(b + i)).to(tl.bfloat16))
    tl.store(f + rows, tl.dot(tl.load(h + rows), tl.load(h + rows)) + tl.dot(tl.load(b + rows), tl.load(b + rows)))
    tl.store(f + i + 256, tl.floor(tl.load(f + i)) + tl.sqrt(tl.load(f + i)))
    tl.atomic_add(n + i, tl.abs(tl.load(n + i)), sem="relaxed")
    tl.atomic_cas(n, 0, 1)
    tl.atomic_max(f + i, tl.load(f + i))
    tl.store(n + i, (tl.load(f + i).to(tl.int32) ^ tl.load(n + i)) & ~tl.load(n + i + 1))
"""
MAIN = r"""
#include "mix.h"
#include <math.h>
#include <stdio.h>

enum { N = 1000, BLOCK = 32, ROWS = 16 };

int main(void) {
  static _Float16 x[N];
  static float y[ROWS * ROWS], out[N + 1];
  int p, r, c, k, wrong = 0;
  for (k = 0; k < N; k++)
    x[k] = (_Float16)(k % 17 * 0.125f - 1);
  for (k = 0; k < ROWS * ROWS; k++)
    y[k] = (float)(k % 5 - 2);
  out[N] = 7;
  wrong += mix_default(0, x, y, out, N) != DEUTERON_SUCCESS;
  for (p = 0; p < 2; p++)
    for (r = 0; r < ROWS; r++)
      for (c = 0; c < BLOCK; c++) {
        const int at = (p * ROWS + r) * BLOCK + c;
        double sum = 0;
        for (k = 0; k < BLOCK; k++)
          sum += at - c + k < N ? (double)x[at - c + k] : 1;
        for (k = 0; k < ROWS; k++)
          sum += y[r * ROWS + k] * exp((p * ROWS + k) * BLOCK + c < N ? (double)x[(p * ROWS + k) * BLOCK + c] : 1);
        wrong += at < N && fabs(out[at] - sum) > 1e-4;
      }
  wrong += out[N] != 7;
  printf("%s %d\n", deuteron_status_string(DEUTERON_SUCCESS), wrong);
  return wrong;
}
"""


def run_compiler(*command: object) -> None:
    result = CliRunner().invoke(main, [str(word) for word in command])
    assert result.exit_code == 0, result.output


@pytest.mark.skipif(not (shutil.which(COMPILER) and shutil.which(EMULATOR)), reason=f"needs {COMPILER} and {EMULATOR}")
def test_aarch64_elsewhere(tmp_path: Path):
    (tmp_path / "mix.py").write_text(KERNEL)
    signature = ["-s", "*fp16, *fp32, *fp32, i32, 32", "-g", "cdiv(n, 16 * BLOCK)"]
    run_compiler("compile", tmp_path / "mix.py", "-n", "mix", *signature, "-t", "cpu:aarch64", "-o", tmp_path / "mix")
    run_compiler("link", next(tmp_path.glob("mix.*.h")), "-o", tmp_path / "mix")
    (tmp_path / "main.c").write_text(MAIN)
    command = [
        COMPILER,
        "-O1",
        *STRICT,
        "-Wno-pedantic",
        *tmp_path.glob("*.c"),
        "-lm",
        "-static",
        "-o",
        tmp_path / "program",
    ]
    subprocess.run(command, check=True)
    program = [EMULATOR, "-cpu", "cortex-a53", tmp_path / "program"]
    assert subprocess.run(program, capture_output=True, text=True).stdout == "success 0\n"


@pytest.mark.skipif(not shutil.which(COMPILER), reason=f"needs {COMPILER}")
@pytest.mark.parametrize(
    "cpu",
    [
        "neoverse-v2",
        "arm64",  # what is usual there
        *(
            pytest.param(cpu, marks=pytest.mark.long)
            for cpu in ("apple-m4", "cortex-x925", "a64fx", "ampere1c", "grace")
        ),
    ],
)
def test_newer_processors_need_no_newer_assembler(cpu: str, tmp_path: Path):
    (tmp_path / "many.py").write_text(MANY)
    signature = ["-s", "*fp16, *bf16, *fp32, *i32, 64", "-g", "1"]
    run_compiler("compile", tmp_path / "many.py", "-n", "many", *signature, "-t", f"cpu:{cpu}", "-o", tmp_path / "many")
    command = [COMPILER, "-march=armv8-a", *STRICT, "-c", next(tmp_path.glob("*.c")), "-o", tmp_path / "many.o"]
    subprocess.run(command, check=True)


def test_such_a_kernel_is_refused_here(workspace):
    other = "cortex-a72" if machine() == "x86_64" else "haswell"

    @deuteron.jit
    def double(x):
        tl.store(x, tl.load(x) * 2)

    kernel = deuteron.compile(deuteron.compiler.ASTSource(double, {"x": "*fp32"}), f"cpu:{other}")
    with pytest.raises(LaunchError, match=f"is compiled for {architecture_of(other)}, and this machine is {machine()}"):
        kernel[(1,)](np.ones(1, np.float32))


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        pytest.param("cpu:cortex-a72" if machine() == "x86_64" else "cpu:haswell", [], id="another processor"),
        pytest.param("cpu", ["-U__LP64__"], id="pointers of 32 bits"),
        pytest.param("cpu", ["-D__AARCH64EB__"], id="big-endian"),
    ],
)
def test_elsewhere_the_file_builds_and_says_that_it_does_not_run(target: str, flags: list[str], tmp_path: Path):
    (tmp_path / "mix.py").write_text(KERNEL)
    signature = ["-s", "*fp16, *fp32, *fp32, i32, 32", "-g", "cdiv(n, 16 * BLOCK)"]
    run_compiler("compile", tmp_path / "mix.py", "-n", "mix", *signature, "-t", target, "-o", tmp_path / "mix")
    run_compiler("link", next(tmp_path.glob("mix.*.h")), "-o", tmp_path / "mix")
    (tmp_path / "main.c").write_text(
        '#include "mix.h"\n#include <stdio.h>\n'
        "int main(void) { return puts(deuteron_status_string(mix_default(0, 0, 0, 0, 1))) < 0; }\n"
    )
    subprocess.run(["gcc", *STRICT, *flags, *tmp_path.glob("*.c"), "-o", tmp_path / "program"], check=True)
    assert subprocess.run([tmp_path / "program"], capture_output=True, text=True).stdout == "unsupported device\n"
