"""64 threads on two devices, with loads and unloads in between: no data race, no launch of an unloaded kernel."""

import pytest
from aot.cuda.fake_gpu import FakeGpu
from aot.workspace import C99

MANY_THREADS = r"""
enum { rounds = 75 };

static void *caller(void *number) {
  size_t i, wrong = 0, mine = (size_t)number;
  if (mine % 3 != 2)
    use_device((int)(mine % 3));
  for (i = 0; i < rounds; i++) {
    wrong += add_alpha_default(NULL, mine, 1.0f, (int)i + 1) != DEUTERON_SUCCESS;
    if (mine == 5 && i % 10 == 0)
      wrong += load_add_alpha() != DEUTERON_SUCCESS;
    if (mine == 7 && i % 7 == 0)
      wrong += unload_add_alpha() != DEUTERON_SUCCESS;
  }
  use_device(-1);
  return (void *)wrong;
}

int main(void) {
  static const int found[] = {90, 80, 0};
  pthread_t threads[64];
  size_t i, wrong = 0;
  void *result;
  devices(found);
  logging(0);
  slow_launches(20);
  for (i = 0; i < 64; i++)
    pthread_create(&threads[i], NULL, caller, (void *)i);
  for (i = 0; i < 64; i++) {
    pthread_join(threads[i], &result);
    wrong += (size_t)result;
  }
  for (i = 0; i < rounds; i++)
    wrong += unload_add_alpha() != DEUTERON_SUCCESS;
  printf("%d %d %d\n", (int)wrong, (int)launches(), leaks());
  return 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads(gpu: FakeGpu, sanitizer: str):
    gpu.emit_cuda("*fp32, fp32, i32, 128", "n", "cuda:80", shared=60000)
    gpu.emit_cuda("*fp32, fp32, i32, 128", "n", "cuda:90", shared=60000)
    gpu.link()
    program = gpu.program(MANY_THREADS, C99, ["-g", "-O1", f"-fsanitize={sanitizer}"])
    assert program.run() == "0 4800 1\n"  # what is held is the primary context of device 0
