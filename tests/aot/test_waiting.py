"""Programs that wait for one another end in C too, whatever their order, the threads and the program's executor."""

import subprocess
from pathlib import Path

import pytest
from aot.workspace import C99, CXX17, Workspace
from click.testing import CliRunner

import deuteron
import deuteron.language as tl
from deuteron.compat.old_spellings import compile as triton_compile
from deuteron.compiler import ASTSource
from deuteron.tools.main import main

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def waits_for_later(flags, out, n):
    p = tl.program_id(0)
    if p < n - 1:
        while tl.load(flags + p + 1, volatile=True) == 0:
            pass
        tl.store(out + p, tl.load(out + p + 1) + 1)
    tl.device_assert(p != 77, "77")
    tl.debug_barrier()
    tl.atomic_xchg(flags + p, 1)
"""
PROGRAM = r"""
#include "HEADER"
#include <stdio.h>

static void in_one_thread(void *context, uint64_t num_parts, deuteron_task task, void *launch) {
  uint64_t part;
  (void)context;
  for (part = 0; part < num_parts; part++)
    task(launch, part);
}

static int call(int n, int status) {
  int32_t flags[100] = {0}, out[100] = {0};
  int i, wrong = FUNCTION(NULL, flags, out, n) != status;
  for (i = 0; i < n && status == DEUTERON_SUCCESS; i++)
    wrong += out[i] != n - 1 - i || flags[i] != 1;
  return wrong;
}

int main(void) {
  int wrong = call(40, DEUTERON_SUCCESS) + call(1, DEUTERON_SUCCESS) + call(0, DEUTERON_SUCCESS);
  wrong += FAILING;
  deuteron_set_executor(in_one_thread, NULL);
  wrong += call(17, DEUTERON_SUCCESS);
  unload_FUNCTION();
  printf("%d\n", wrong + call(5, DEUTERON_SUCCESS));
  return 0;
}
"""


def emit(folder: Path, *options: str) -> Path:
    (folder / "waits.py").write_text(KERNEL)
    what = [
        "-n",
        "waits_for_later",
        "-s",
        "*i32, *i32, i32",
        "-g",
        "n",
        "-o",
        str(folder / "waits_for_later"),
        "-t",
        "cpu",
    ]
    result = CliRunner().invoke(main, ["compile", str(folder / "waits.py"), *what, *options])
    assert result.exit_code == 0, result.output
    return next(folder.glob("*.h"))


def program_for(header: Path, failing: str) -> str:
    given = {"HEADER": header.name, "FUNCTION": header.stem.replace(".", "_"), "FAILING": failing}
    text = PROGRAM
    for name, value in given.items():
        text = text.replace(name, value)
    return text


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_programs_wait_for_later_ones(workspace: Workspace, sanitizer: str, threads: int):
    program = program_for(emit(workspace.folder), "0")
    built = workspace.build(program, C99, ["-g", "-O1", f"-fsanitize={sanitizer}"])
    assert built.run(DEUTERON_NUM_THREADS=str(threads)) == "0\n"


def test_an_assertion_ends_those_that_wait(workspace: Workspace):
    """Program 77 fails, and what it would have written is waited for by all before it."""
    program = program_for(emit(workspace.folder, "-O", "debug=True"), "call(90, DEUTERON_ERROR_ASSERT)")
    assert workspace.build(program).run(DEUTERON_NUM_THREADS="2") == "0\n"


@deuteron.jit
def waits_for_later(flags, out, n):
    p = tl.program_id(0)
    if p < n - 1:
        while tl.load(flags + p + 1, volatile=True) == 0:
            pass
        tl.store(out + p, tl.load(out + p + 1) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(flags + p, 1)


LOADED = r"""
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>

int main(int, char **argv) {
  void *kernel = dlsym(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), "waits_for_later");
  auto run = reinterpret_cast<void (*)(uint32_t, uint32_t, uint32_t, int, void **, void *)>(
      dlsym(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL), "run_from_nativert"));
  int32_t flags[40] = {}, out[40] = {}, n = 40;
  void *args[] = {flags, out, &n};
  run(40, 1, 1, 1, args, kernel);
  std::printf("%d %d\n", out[0], out[39]);
}
"""


def test_in_libraries_that_torch_loads(tmp_path: Path):
    source = ASTSource(waits_for_later, {"flags": "*i32", "out": "*i32", "n": "i32"}, {})
    kernel = triton_compile(source, target="cpu")
    for name in ("so", "launcher.so"):
        (tmp_path / name).write_bytes(kernel.asm[name])
    (tmp_path / "main.cpp").write_text(LOADED)
    subprocess.run([*CXX17, tmp_path / "main.cpp", "-ldl", "-o", tmp_path / "program"], check=True)
    given = {"DEUTERON_NUM_THREADS": "2"}
    command = [tmp_path / "program", tmp_path / "so", tmp_path / "launcher.so"]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=given, timeout=60)
    assert result.stdout == "39 0\n"
