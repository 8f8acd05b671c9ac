"""Programs that round upward, flush denormal numbers, or trap: kernels compute what they always do, and leave it so."""

import shutil
import subprocess
from pathlib import Path

import pytest
from aot.workspace import STRICT
from click.testing import CliRunner

from deuteron.backend.llvm.targets import machine
from deuteron.tools.main import main

# Lanes beyond n compute 1 / 0 and log(0); `tiny` is denormal; many programs, so that all threads of the pool run some.
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def spread(x, out, tiny, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(out + i, tl.exp(a) / a + tl.log(a) + tl.sin(a), mask=i < n)
    tl.store(tiny + i, a * 1e-41, mask=i < n)
"""
MAIN = r"""
#define _GNU_SOURCE
#include "spread.h"
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 100001 };
static float x[N], out[2][N], tiny[2][N];

static void flush_denormals(void) {
#ifdef __aarch64__
  uint64_t fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1 << 24));
#else
  unsigned mxcsr;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  mxcsr |= 0x8040;
  __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
#endif
}

int main(int argc, char **argv) {
  volatile float least = 1e-38f, three = 3;
  float before[2], after[2];
  int i, traps, mode = argc > 1 ? atoi(argv[1]) : 0;
  for (i = 0; i < N; i++)
    x[i] = 0.001f + (float)(i % 1000) / 50;
  spread_default(NULL, x, out[0], tiny[0], N);
  if (mode == 1)
    fesetround(FE_UPWARD);
  if (mode == 2)
    fesetround(FE_TOWARDZERO);
  if (mode == 3)
    flush_denormals();
  if (mode == 4)
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
  traps = fegetexcept();
  before[0] = least / three, before[1] = 1 / three;
  spread_default(NULL, x, out[1], tiny[1], N);
  after[0] = least / three, after[1] = 1 / three;
  printf("%d %d %d\n", memcmp(out[0], out[1], sizeof out[0]) != 0, memcmp(tiny[0], tiny[1], sizeof tiny[0]) != 0,
         memcmp(before, after, sizeof before) != 0 || traps != fegetexcept());
  return 0;
}
"""
OTHER = "aarch64" if machine() == "x86_64" else "x86_64"
TOOLS = {machine(): ("gcc",), OTHER: (f"{OTHER}-linux-gnu-gcc", f"qemu-{OTHER}")}
MODES = {"upward": 1, "toward zero": 2, "denormals": 3, "traps": 4}


def _run(*command: object) -> str:
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", params=TOOLS)
def program(request, tmp_path_factory) -> list[object]:
    compiler, *emulator = TOOLS[request.param]
    if not all(map(shutil.which, TOOLS[request.param])):
        pytest.skip(f"needs {' and '.join(TOOLS[request.param])}")
    folder: Path = tmp_path_factory.mktemp("program")
    (folder / "spread.py").write_text(KERNEL)
    (folder / "main.c").write_text(MAIN)
    signature = ["-s", "*fp32, *fp32, *fp32, i32, 256", "-g", "cdiv(n, BLOCK)", "-t", f"cpu:{request.param}"]
    command = ["compile", str(folder / "spread.py"), "-n", "spread", *signature, "-o", str(folder / "spread")]
    linking = ["link", "-o", str(folder / "spread")]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert CliRunner().invoke(main, [*linking, *map(str, folder.glob("*.h"))]).exit_code == 0
    _run(compiler, "-O1", *STRICT, *folder.glob("*.c"), "-lm", "-static", "-pthread", "-o", folder / "program")
    return [*emulator, folder / "program"]


@pytest.mark.parametrize("mode", MODES.values(), ids=MODES)
def test_results_do_not_depend_on_the_callers_environment(program: list[object], mode: int):
    assert _run("env", "DEUTERON_NUM_THREADS=2", *program, mode) == "0 0 0\n"
