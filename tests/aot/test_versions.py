"""Kernels that two versions of Deuteron emitted, in one program: each has a runtime part of its own."""

import re
import subprocess
from pathlib import Path

import pytest
from aot.cuda.fake_gpu import FakeGpu, FakeProgram, build_driver
from aot.workspace import ADD_ALPHA, Program, Workspace

CPU_PROGRAM = r"""
#include NEW
#include OLD
#include <stdio.h>

static uint64_t parts;

static void inline_executor(void *context, uint64_t count, deuteron_task task, void *launch) {
  uint64_t part;
  (void)context;
  for (part = 0; part < count; part++, parts++)
    task(launch, part);
}

int main(void) {
  static float x[1000];
  int i, wrong = 0;
  for (i = 0; i < 100; i++)
    wrong += NEW_CALL(NULL, x, 1.0f, 1000) + OLD_CALL(NULL, x, 2.0f, 1000);
  wrong += NEW_UNLOAD() + OLD_CALL(NULL, x, 1.0f, 1000) + OLD_UNLOAD();
  deuteron_set_executor(inline_executor, NULL);
  wrong += NEW_CALL(NULL, x, 1.0f, 1000) + OLD_CALL(NULL, x, 1.0f, 1000);
  for (i = 0; i < 1000; i++)
    wrong += x[i] != 303.0f;
  printf("%d %d %s\n", wrong, parts > 2, deuteron_status_string(DEUTERON_ERROR_NO_KERNEL));
  return 0;
}
"""
GPU_PROGRAM = r"""
#include NEW
#include OLD
#include <stdio.h>

int main(void) {
  int i, wrong = 0;
  for (i = 0; i < 3; i++)
    wrong += (int)NEW_CALL(NULL, 0x10, 1.0f, 5) + (int)OLD_CALL(NULL, 0x20, 1.0f, 5) + (int)NEW_UNLOAD();
  printf("%d\n", wrong + (int)OLD_UNLOAD() + (int)NEW_UNLOAD());
  return 0;
}
"""


def of_an_older_version(header: Path) -> None:
    """Make a kernel's source one of an earlier version: other names of what files share, which is larger."""
    source = header.with_suffix(".c")
    text = re.sub(r"\b(deuteron_\w+_v)(\d)\b", lambda match: f"{match[1]}{int(match[2]) - 1}", source.read_text())
    text = text.replace("deuteron_executor_v0", "deuteron_executor_v1").replace("get_executor_v0", "get_executor_v1")
    for last in ("  int64_t loads;        /* deuteron_load less", "  deuteron_cuda_functions call;\n} deuteron_cuda;"):
        text = text.replace(last, f"  int64_t in_older_versions[64];\n{last}" if last in text else last)
    text = re.sub(r"(deuteron_(pool|cuda)_v\d = \{)[^;]*;", r"\1PTHREAD_MUTEX_INITIALIZER};", text)
    source.write_text(text)


def built(folder: Path, program: str, new: Path, old: Path, *flags: str) -> Path:
    defined = [f'-DNEW="{new.name}"', f'-DOLD="{old.name}"']
    for word, header in (("NEW", new), ("OLD", old)):
        function = header.stem.replace(".", "_")
        defined += [f"-D{word}_CALL={function}", f"-D{word}_UNLOAD=unload_{function}"]
    main, made = folder / "main.c", folder / "program"
    main.write_text(program)
    sources = [main, new.with_suffix(".c"), old.with_suffix(".c")]
    subprocess.run(["gcc", "-g", "-O1", f"-I{folder}", *defined, *flags, *sources, "-o", made], check=True)
    return made


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_on_the_cpu(workspace: Workspace, sanitizer: str):
    new = workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "n", scratch_bytes=64)
    old = workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 256", "n", scratch_bytes=64)
    of_an_older_version(old)
    program = built(workspace.folder, CPU_PROGRAM, new, old, f"-fsanitize={sanitizer}")
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert " deuteron_pool_v1" in names and " deuteron_pool_v2" in names
    assert Program(program).run(DEUTERON_NUM_THREADS="3") == "0 1 no kernel for these arguments\n"


def test_on_a_gpu(tmp_path: Path):
    gpu = FakeGpu(tmp_path)
    new, old = (gpu.emit_cuda(f"*fp32, fp32, i32, {block}", "1") for block in (128, 256))
    of_an_older_version(old)
    build_driver(gpu.driver)
    program = built(gpu.folder, GPU_PROGRAM, new, old, "-fsanitize=address,undefined", "-fno-sanitize-recover")
    names = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert " deuteron_cuda_v4" in names and " deuteron_cuda_v5" in names
    assert FakeProgram(program, gpu.driver).run() == "0\n"
