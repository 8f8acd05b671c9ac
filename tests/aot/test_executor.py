"""Kernels on threads of the program's own: every program runs once, and an executor that does otherwise is a status."""

import subprocess

import pytest
from aot.test_threads import COMMON, MANY_THREADS, SCRATCH, emit
from aot.workspace import C99, CXX17, STRICT, Program, Workspace

from deuteron.aot.link import link_kernels

THREADED = ["-g", "-O1", "-fsanitize=thread"]
INCLUDES = '#include "linked.h"\n#include <stdio.h>\n'
EXECUTORS = r"""
static uint64_t num_calls, num_parts_seen __attribute__((unused));

static inline void in_order(void *context, uint64_t num_parts, deuteron_task task, void *launch) {
  uint64_t i;
  __atomic_fetch_add((uint64_t *)context, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&num_parts_seen, num_parts, __ATOMIC_RELAXED);
  for (i = num_parts; i-- > 0;)
    task(launch, i);
}

static inline void forgetful(void *context, uint64_t num_parts, deuteron_task task, void *launch) {
  (void)context;
  if (num_parts > 1)
    task(launch, 0);
}
"""
MAIN = (
    COMMON
    + EXECUTORS
    + r"""
int main(void) {
  float x[40] = {0};
  int wrong;
  deuteron_set_executor(in_order, &num_calls);
  wrong = call(1, 3) + call(1000, 5) + call(17, 1);
  printf("%d %d %d ", wrong, (int)num_calls, (int)num_parts_seen);
  deuteron_set_executor(forgetful, NULL);
  printf("%s ", deuteron_status_string(add_alpha_default(NULL, x, 1.0f, 40)));
  deuteron_set_executor(NULL, NULL);
  printf("%d %d\n", call(1000, 5), (int)num_calls);
  return 0;
}
"""
)
SCRATCH_MAIN = (
    INCLUDES
    + EXECUTORS
    + r"""
static int64_t out[1000];

int main(void) {
  int i, wrong = 0;
  deuteron_set_executor(in_order, &num_calls);
  printf("%s ", deuteron_status_string(add_alpha_default(NULL, out, 0, 1000)));
  for (i = 0; i < 1000; i++)
    wrong += out[i] == 0 || out[i] % 64 != 0;
  printf("%d\n", wrong);
  return 0;
}
"""
)
OPENMP = (
    COMMON
    + r"""
static void parallel(void *context, uint64_t num_parts, deuteron_task task, void *launch) {
  int64_t i;
  (void)context;
#pragma omp parallel for schedule(static)
  for (i = 0; i < (int64_t)num_parts; i++)
    task(launch, (uint64_t)i);
}

int main(void) {
  deuteron_set_executor(parallel, NULL);
  printf("%d\n", call(1000, 20));
  return 0;
}
"""
)


@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
def test_every_program_runs_once(workspace: Workspace, compiler: list[str]):
    emit(workspace)
    program = workspace.build(MAIN, compiler, ["-g", "-U_GNU_SOURCE", "-fsanitize=address,undefined"])
    assert program.run(DEUTERON_NUM_THREADS="3") == "0 6 17 launch failed 0 6\n"


def test_it_may_change_while_threads_launch(workspace: Workspace):
    emit(workspace, scratch_bytes=64)
    changes = "(deuteron_set_executor(i % 2 ? in_order : NULL, &num_calls), unload_add_alpha());"
    main = MANY_THREADS.replace("unload_add_alpha();", changes).replace(COMMON, COMMON + EXECUTORS)
    program = workspace.build(main, C99, THREADED)
    assert program.run(DEUTERON_NUM_THREADS="4") == "0\n"


@pytest.mark.parametrize(("scratch_bytes", "printed"), [(1000, "success 0\n"), (1 << 60, "out of memory 1000\n")])
def test_scratch(workspace: Workspace, scratch_bytes: int, printed: str):
    header = workspace.emit(SCRATCH, "*i64, fp32, i32, 128", "n", scratch_bytes=scratch_bytes)
    link_kernels([header], workspace.folder / "linked")
    assert workspace.build(SCRATCH_MAIN, C99, ["-g", "-fsanitize=undefined"]).run() == printed


def test_openmp(workspace: Workspace):
    emit(workspace)
    assert workspace.build(OPENMP, [*C99, "-fopenmp"]).run(DEUTERON_NUM_THREADS="4") == "0\n"


def test_a_program_and_its_libraries_have_one(workspace: Workspace):
    """Set in the program, it is that of a kernel in a shared library, which has a pool of its own."""
    emit(workspace)
    library = workspace.folder / "libkernels.so"
    sources = sorted(map(str, workspace.folder.glob("*.c")))
    subprocess.run(["gcc", "-shared", "-fPIC", *STRICT, *sources, "-o", library], check=True)
    (workspace.folder / "program.c").write_text(MAIN)
    program = workspace.folder / "program"
    flags = [f"-L{workspace.folder}", "-lkernels", f"-Wl,-rpath,{workspace.folder}", "-lpthread"]
    subprocess.run([*C99, workspace.folder / "program.c", *flags, "-o", program], check=True)
    assert Program(program).run(DEUTERON_NUM_THREADS="3") == "0 6 17 launch failed 0 6\n"
