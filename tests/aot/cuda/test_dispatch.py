"""Kernels for several architectures in one library: the one that the current device runs is launched."""

import re

import pytest
from aot.cuda.fake_gpu import SANITIZED, FakeGpu

from deuteron.aot.targets import select_target
from deuteron.errors import UsageError

SIGNATURE = "*fp32, fp32, i32, 128"
LAUNCH_ON_EACH = """
  static const int found[] = {80, 86, 89, 87, 90, 100, 75, 121, 0};
  int i;
  devices(found);
  for (i = 0; i < 8; i++) {
    reset();
    use_device(i);
    printf("%d ", (int)add_alpha_default(NULL, 0, 0, 5));
    if (strstr(calls(), "add_alpha_"))
      printf("%.8s", strstr(calls(), "add_alpha_") + 10);
    printf("\\n");
  }
"""


def hash_of(header) -> str:
    return header.stem.split(".")[1][:8]


def test_the_best_kernel_for_each_device(gpu: FakeGpu):
    kernels = {arch: hash_of(gpu.emit_cuda(SIGNATURE, "1", f"cuda:{arch}")) for arch in (90, 80, 86, 120)}
    gpu.link()
    expected = {80: 80, 86: 86, 89: 86, 87: 86, 90: 90, 100: None, 75: None, 121: 120}
    lines = [f"0 {kernels[arch]}" if arch else "209 " for arch in expected.values()]
    assert gpu.program(LAUNCH_ON_EACH).run().splitlines() == lines


def test_ptx_for_devices_that_no_code_is_for(gpu: FakeGpu):
    """The driver translates it, on any device from its own architecture on."""
    names = {"cuda:90": 90, "cuda:80+ptx": 80, "cuda:120": 120}
    kernels = {arch: hash_of(gpu.emit_cuda(SIGNATURE, "1", target)) for target, arch in names.items()}
    gpu.link()
    expected = {80: 80, 86: 80, 89: 80, 87: 80, 90: 90, 100: 80, 75: None, 121: 120}
    lines = [f"0 {kernels[arch]}" if arch else "209 " for arch in expected.values()]
    assert gpu.program(LAUNCH_ON_EACH, flags=SANITIZED).run().splitlines() == lines


def test_code_and_ptx_of_one_kernel(gpu: FakeGpu):
    """Each is loaded once, for all devices that take it, and the last unload takes both back."""
    gpu.emit_cuda(SIGNATURE, "1", "cuda:80+ptx", shared=60000)
    gpu.link()
    body = """
  static const int found[] = {80, 90, 100, 75, 0};
  int i;
  devices(found);
  for (i = 0; i < 4; i++) {
    use_device(i);
    printf("%d ", (int)load_add_alpha());
    printf("%d ", (int)add_alpha_default(NULL, 0, 0, 5));
  }
  printf("\\n%s\\n", calls());
  for (i = 0; i < 3; i++) {
    printf("%d ", (int)unload_add_alpha());
    printf("%d ", leaks() - 1);
  }
"""
    status, log, unloads = gpu.program(body, flags=SANITIZED).run().splitlines()
    assert status == "0 0 0 0 0 0 209 209 "
    assert unloads == "0 2 0 2 0 0 "
    assert log.count("cuLibraryLoadData") == 2
    assert log.count("60000@0") == log.count("60000@1") == log.count("60000@2") == 1
    assert log.count("translated ") == 2


def test_a_translation_that_fails_is_a_status(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1", "cuda:80+ptx")
    gpu.link()
    body = """
  use_device(0);
  fail("cuLibraryLoadData", 1, 222);
  puts(deuteron_status_string(add_alpha_default(NULL, 0, 0, 5)));
  puts(deuteron_status_string(add_alpha_default(NULL, 0, 0, 5)));
"""
    assert gpu.program(body, flags=SANITIZED).run() == "unsupported ptx version\nsuccess\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("cuda:90+ptx", "sm_90a, which no later GPU has"),
        ("cpu+ptx", "a kernel for 'cpu' has no PTX"),
    ],
)
def test_targets_without_ptx(target: str, message: str):
    with pytest.raises(UsageError, match=re.escape(message)):
        select_target(target)


@pytest.mark.parametrize(("shared", "lines"), [(101376, ["80 0", "89 0"]), (101377, ["80 0", "89 209"])])
def test_a_device_with_less_shared_memory_than_the_kernel_needs(gpu: FakeGpu, shared: int, lines: list[str]):
    gpu.emit_cuda(SIGNATURE, "1", "cuda:80", shared=shared)
    gpu.link()
    body = """
  static const int found[] = {80, 89, 0};
  int i;
  devices(found);
  for (i = 0; i < 2; i++) {
    use_device(i);
    printf("%d %d\\n", found[i], (int)add_alpha_default(NULL, 0, 0, 5));
  }
"""
    assert gpu.program(body).run().splitlines() == lines


def test_a_hint_that_holds_goes_before_one_that_does_not(gpu: FakeGpu):
    plain = hash_of(gpu.emit_cuda(SIGNATURE, "1"))
    aligned = hash_of(gpu.emit_cuda("*fp32:16, fp32, i32, 128", "1"))
    gpu.link()
    body = """
  use_device(0);
  add_alpha_default(NULL, 0x20, 0, 5);
  add_alpha_default(NULL, 0x28, 0, 5);
  printf("%s\\n", calls());
"""
    printed = gpu.program(body).run()
    assert printed.index(aligned) < printed.index(plain)
    assert printed.count("cuLaunchKernel") == 2


@pytest.mark.parametrize(("device", "status"), [(90, 0), (80, 0), (100, 209)])
def test_loading_takes_what_fits(gpu: FakeGpu, device: int, status: int):
    gpu.emit_cuda(SIGNATURE, "1", "cuda:80")
    gpu.emit_cuda(SIGNATURE, "1", "cuda:90")
    gpu.link()
    body = f"""
  static const int found[] = {{{device}, 0}};
  devices(found);
  use_device(0);
  printf("%d ", (int)load_add_alpha());
  printf("%d ", leaks() - 1);
  printf("%d ", (int)unload_add_alpha());
  printf("%d\\n", leaks() - 1);
"""
    assert gpu.program(body).run() == f"{status} {int(status == 0)} 0 0\n"
