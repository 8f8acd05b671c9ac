"""Forks: a child cannot use CUDA once its parent has, and is told so, whatever the parent's threads were at."""

import pytest
from aot.cuda.fake_gpu import FakeGpu

PROGRAM = r"""
#include <sys/wait.h>
#include <unistd.h>

static void *load(void *argument) {
  use_device(0);
  load_add_alpha();
  return argument;
}

static void report(const char *who) {
  const deuteron_status launch = add_alpha_default(NULL, 0, 0, 5), unload = unload_add_alpha();
  printf("%s: %s, %s\n", who, deuteron_status_string(launch), deuteron_status_string(unload));
  fflush(stdout);
}

int main(int argc, char **argv) {
  const char *when = argv[argc - 1];
  pthread_t thread;
  pid_t child;
  int is_threaded = strcmp(when, "while loading") == 0;
  use_device(0);
  if (is_threaded) {
    slow_loads(300000);
    pthread_create(&thread, NULL, load, NULL);
    usleep(100000);
  } else if (strcmp(when, "after a launch") == 0) {
    add_alpha_default(NULL, 0, 0, 5);
  }
  child = fork();
  if (child == 0) {
    alarm(20);
    report("child");
    _exit(0);
  }
  waitpid(child, NULL, 0);
  if (is_threaded)
    pthread_join(thread, NULL);
  report("parent");
  return 0;
}
"""


@pytest.mark.parametrize(
    ("when", "status"),
    [("while loading", "not initialized"), ("after a launch", "not initialized"), ("before", "success")],
)
def test_a_forked_child(gpu: FakeGpu, when: str, status: str):
    gpu.emit_cuda("*fp32, fp32, i32, 128", "1")
    gpu.link()
    printed = gpu.program(PROGRAM).run(when)
    assert printed == f"child: {status}, {status}\nparent: success, success\n"
