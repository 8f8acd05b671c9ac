"""The thread pool within the emitted C: many callers, forks, unloading in between, and no undefined moment for TSAN."""

import subprocess

import pytest
from aot.workspace import ADD_ALPHA, C99, CXX17, Program, Workspace

from deuteron.aot.link import link_kernels

INCLUDES = """
#define _GNU_SOURCE
#include "linked.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
"""
COMMON = (
    INCLUDES
    + r"""
static int call(int n, int rounds) {
  float *x = (float *)malloc((size_t)n * sizeof(float));
  int i, wrong = 0;
  for (i = 0; i < n; i++)
    x[i] = 0;
  for (i = 0; i < rounds; i++)
    wrong += add_alpha_default(NULL, x, 1.0f, n) != DEUTERON_SUCCESS;
  for (i = 0; i < n; i++)
    wrong += x[i] != (float)rounds;
  free(x);
  return wrong;
}
"""
)

MANY_THREADS = (
    COMMON
    + r"""
static void *caller(void *number) { return (void *)(size_t)call(50 + 9 * (int)(size_t)number, 40); }

int main(void) {
  pthread_t threads[64];
  size_t i, wrong = 0;
  void *result;
  for (i = 0; i < 64; i++)
    pthread_create(&threads[i], NULL, caller, (void *)i);
  for (i = 0; i < 20; i++)
    unload_add_alpha();
  for (i = 0; i < 64; i++) {
    pthread_join(threads[i], &result);
    wrong += (size_t)result;
  }
  printf("%d\n", (int)wrong);
  return 0;
}
"""
)

FORKS = (
    COMMON
    + r"""
int main(void) {
  int wrong = call(100, 10), status = 1, i;
  for (i = 0; i < 3; i++) {
    pid_t child = fork();
    if (child == 0)
      _exit(call(100, 10) + unload_add_alpha() + call(100, 10));
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  printf("%d\n", wrong + call(100, 10));
  return 0;
}
"""
)


def emit(workspace: Workspace, scratch_bytes: int = 0) -> None:
    header = workspace.emit(ADD_ALPHA, "*fp32, fp32, i32, 128", "n", scratch_bytes=scratch_bytes)
    link_kernels([header], workspace.folder / "linked")


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_call_one_kernel(workspace: Workspace, sanitizer: str):
    emit(workspace, scratch_bytes=4096)
    program = workspace.build(MANY_THREADS, C99, ["-g", "-O1", f"-fsanitize={sanitizer}"])
    assert program.run(DEUTERON_NUM_THREADS="6") == "0\n"


def test_a_forked_child_launches(workspace: Workspace):
    emit(workspace)
    assert workspace.build(FORKS).run(DEUTERON_NUM_THREADS="4") == "0\n"


STATIC = """
#include "linked.h"
#include <cstdio>

struct Caller {
  const char *when;
  int wrong = 0;
  void call() {
    static float x[1000];
    for (int round = 0; round < 3; round++)
      wrong += add_alpha_default(nullptr, x, 1.0f, 1000) != DEUTERON_SUCCESS;
  }
  explicit Caller(const char *when) : when(when) { call(); }
  ~Caller() {
    call();
    std::printf("%s %d\\n", when, wrong);
  }
};
static Caller before("static");

int main() {
  static Caller late("function");
  unload_add_alpha();
  return 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_objects_that_live_before_and_after_main(workspace: Workspace, sanitizer: str):
    emit(workspace, scratch_bytes=64)
    program = workspace.build(STATIC, CXX17, ["-g", f"-fsanitize={sanitizer}"])
    assert program.run(DEUTERON_NUM_THREADS="4") == "function 0\nstatic 0\n"


RELOADS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int call(const char *path) {
  static float x[1000];
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  int (*launch)(void *, float *, float, int);
  int i, wrong = 0;
  *(void **)&launch = dlsym(library, "add_alpha_default");
  for (i = 0; i < 3; i++)
    wrong += launch(NULL, x, 1.0f, 1000);
  return wrong + dlclose(library) + (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL);
}

int main(int argc, char **argv) {
  int i, status, wrong = argc != 2;
  for (i = 0; i < 20; i++)
    wrong += call(argv[1]);
  if (fork() == 0)
    _exit(call(argv[1]));
  wait(&status);
  printf("%d %d\n", wrong, status);
  return 0;
}
"""


def test_a_library_that_is_unloaded_and_loaded_again(workspace: Workspace):
    """Its threads end with it, and a fork afterwards calls nothing of it."""
    emit(workspace, scratch_bytes=64)
    library = workspace.folder / "libkernels.so"
    sources = sorted(map(str, workspace.folder.glob("*.c")))
    subprocess.run(["gcc", "-shared", "-fPIC", *sources, "-o", library], check=True)
    (workspace.folder / "program.cc").write_text(RELOADS)
    program = workspace.folder / "reloads"
    command = ["gcc", "-x", "c", "-g", "-fsanitize=address,undefined", workspace.folder / "program.cc", "-o", program]
    subprocess.run(command, check=True)
    assert Program(program).run(str(library), DEUTERON_NUM_THREADS="4") == "0 0\n"


COUNT_THREADS = (
    COMMON
    + r"""
#include <dirent.h>
#include <poll.h>

static int threads(void) {
  DIR *folder = opendir("/proc/self/task");
  int count = 0;
  while (readdir(folder))
    count++;
  closedir(folder);
  return count - 2;
}

/* The kernel lists a thread that was joined for a moment longer. */
static int threads_left(void) {
  for (int i = 0; i < 1000 && threads() > 1; i++)
    poll(0, 0, 1);
  return threads();
}

int main(void) {
  int wrong = call(1, 1);
  printf("%d ", threads());
  wrong += call(1000, 1);
  printf("%d ", threads());
  unload_add_alpha();
  printf("%d ", threads_left());
  wrong += call(1000, 1);
  printf("%d %d\n", threads(), wrong);
  return 0;
}
"""
)


@pytest.mark.parametrize(
    "given, counts",
    [("5", "1 5 1 5 0"), ("1", "1 1 1 1 0")],
)
def test_threads_start_with_the_first_grid_and_stop_with_unload(workspace: Workspace, given: str, counts: str):
    emit(workspace)
    assert workspace.build(COUNT_THREADS).run(DEUTERON_NUM_THREADS=given).strip() == counts


# Every program leaves its number at both ends of its scratch block, looks whether it stayed, and stores the block's
# address to out[p].
SCRATCH = r"""
define hidden void @SYMBOL(ptr %args, ptr %grid, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %outp = load ptr, ptr %args
  %out = load ptr, ptr %outp
  br label %loop
loop:
  %p = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %last = getelementptr i64, ptr %scratch, i64 124
  store volatile i64 %p, ptr %last
  store volatile i64 %p, ptr %scratch
  %a = load volatile i64, ptr %last
  %b = load volatile i64, ptr %scratch
  %same = icmp eq i64 %a, %b
  %address = ptrtoint ptr %scratch to i64
  %result = select i1 %same, i64 %address, i64 1
  %place = getelementptr i64, ptr %out, i64 %p
  store i64 %result, ptr %place
  %next = add i64 %p, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

SCRATCH_MAIN = r"""
#include "linked.h"
#include <stdio.h>

static int64_t out[100000];

int main(void) {
  int i, wrong = 0;
  for (i = 0; i < 20; i++)
    wrong += add_alpha_default(0, out, 0, 100000) != DEUTERON_SUCCESS;
  for (i = 0; i < 100000; i++)
    wrong += out[i] == 0 || out[i] % 64 != 0;
  printf("%d\n", wrong);
  return 0;
}
"""


def test_every_thread_has_scratch_of_its_own(workspace: Workspace):
    header = workspace.emit(SCRATCH, "*i64, fp32, i32, 128", "n", scratch_bytes=1000)
    link_kernels([header], workspace.folder / "linked")
    program = workspace.build(SCRATCH_MAIN, C99, ["-g", "-fsanitize=address,undefined"])
    assert program.run(DEUTERON_NUM_THREADS="4") == "0\n"


BUSY = (
    INCLUDES
    + r"""
static int stop;

/* Launches until it is told to stop, or cancelled. */
static void *busy(void *number) {
  int64_t *out = (int64_t *)calloc((size_t)number, sizeof *out);
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    add_alpha_default(NULL, out, 0, (int)(size_t)number);
    pthread_testcancel();
  }
  free(out);
  return NULL;
}

static int launch(int n) {
  static int64_t out[1000];
  alarm(20);
  return add_alpha_default(NULL, out, 0, n) != DEUTERON_SUCCESS;
}

static inline void in_order(void *context, uint64_t num_parts, deuteron_task task, void *launch) {
  (void)context;
  for (uint64_t i = 0; i < num_parts; i++)
    task(launch, i);
}
"""
)
CANCELLED = (
    BUSY
    + r"""
int main(void) {
  int wrong = 0, i;
  for (i = 0; i < 100; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, busy, (void *)1000000);
    usleep(100 + 7 * (unsigned)i);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    wrong += launch(1000);
  }
  printf("%d\n", wrong);
  return 0;
}
"""
)
FORKS_AMID_LAUNCHES = (
    BUSY
    + r"""
int main(int argc, char **argv) {
  const int n = atoi(argv[1]);
  pthread_t threads[3];
  int wrong = 0, status = 1, i;
  if (argc > 2)
    deuteron_set_executor(in_order, NULL);
  for (i = 0; i < 3; i++)
    pthread_create(&threads[i], NULL, busy, (void *)(size_t)n);
  usleep(1000);
  for (i = 0; i < 200 && wrong == 0; i++) {
    pid_t child = fork();
    if (child == 0)
      _exit(launch(n));
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (i = 0; i < 3; i++)
    pthread_join(threads[i], NULL);
  printf("%d\n", wrong);
  return 0;
}
"""
)


def emit_scratch(workspace: Workspace) -> None:
    header = workspace.emit(SCRATCH, "*i64, fp32, i32, 128", "n", scratch_bytes=1000)
    link_kernels([header], workspace.folder / "linked")


def test_a_thread_that_is_cancelled_ends_its_launch_first(workspace: Workspace):
    emit_scratch(workspace)
    assert workspace.build(CANCELLED, [*C99, "-std=gnu99"]).run(DEUTERON_NUM_THREADS="4") == "0\n"


@pytest.mark.parametrize("arguments", [["1"], ["1000"], ["16", "executor"]], ids=["one program", "pool", "executor"])
def test_a_child_that_is_forked_amid_launches_of_other_threads(workspace: Workspace, arguments: list[str]):
    """A mutex that another thread had then would be locked in it for ever."""
    emit_scratch(workspace)
    program = workspace.build(FORKS_AMID_LAUNCHES, [*C99, "-std=gnu99"])
    assert program.run(*arguments, DEUTERON_NUM_THREADS="2") == "0\n"


def test_scratch_that_cannot_be_had_is_a_status(workspace: Workspace):
    header = workspace.emit(SCRATCH, "*i64, fp32, i32, 128", "n", scratch_bytes=1 << 60)
    link_kernels([header], workspace.folder / "linked")
    main = (
        '#include "linked.h"\nint main(void) { return add_alpha_default(0, 0, 0, 9) != DEUTERON_ERROR_OUT_OF_MEMORY; }'
    )
    workspace.build(main).run()
