"""Every call of the driver fails once: the status is passed on, nothing leaks, and the next call works. Then no driver,
an old one, no device, and devices of other architectures."""

import pytest
from aot.cuda.fake_gpu import SANITIZED, FakeGpu, build_driver
from aot.workspace import CXX17

SIGNATURE = "*fp32, fp32, i32, 128"

# What a load and a launch call, on a thread with a context and on one without.
WITH_CONTEXT = [
    "cuInit",
    "cuCtxGetDevice",
    "cuDeviceGetAttribute",
    "cuLibraryLoadData",
    "cuLibraryGetKernel",
    "cuKernelSetAttribute",
]
WITHOUT_CONTEXT = ["cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2"]

EACH_FAILS = r"""
static int check(const char *function, int call, int is_load) {
  int status, after, held;
  fail(function, call, 2);
  status = is_load ? (int)load_add_alpha() : (int)add_alpha_default(NULL, 0x10, 1.0f, 5);
  held = leaks();
  after = is_load ? (int)load_add_alpha() : (int)add_alpha_default(NULL, 0x10, 1.0f, 5);
  printf("%s %d: %d, held %d, then %d, ", function, call, status, held, after);
  printf("unload %d, ", (int)unload_add_alpha());
  printf("held %d\n", leaks());
  return 0;
}

int main(int argc, char **argv) {
  if (strcmp(argv[1], "context") == 0)
    use_device(0);
  (void)argc;
  return check(argv[2], atoi(argv[3]), atoi(argv[4]));
}
"""


def program_that_fails(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1", shared=100000)
    gpu.link()
    return gpu.program(EACH_FAILS, CXX17, SANITIZED)


@pytest.mark.parametrize("is_load", [0, 1], ids=["launch", "load"])
def test_each_call_that_fails(gpu: FakeGpu, is_load: int):
    program = program_that_fails(gpu)
    last = ["cuKernelGetFunction"] if is_load else ["cuLaunchKernel"]
    for function in [*WITH_CONTEXT, "cuDeviceGetAttribute 2", "cuDeviceGetAttribute 3", *last]:
        name, _, call = function.partition(" ")
        printed = program.run("context", name, call or "1", str(is_load)).strip()
        # the context is the program's; a launch that fails leaves the library, as the next one needs it
        held = 2 if name == "cuLaunchKernel" else 1
        assert printed == f"{name} {call or 1}: 2, held {held}, then 0, unload 0, held 1"


@pytest.mark.parametrize("is_load", [0, 1], ids=["launch", "load"])
def test_each_call_that_fails_on_a_thread_without_a_context(gpu: FakeGpu, is_load: int):
    program = program_that_fails(gpu)
    for name in [*WITH_CONTEXT, *WITHOUT_CONTEXT]:
        held = 0 if name in ("cuInit", "cuCtxGetDevice", "cuDeviceGet", "cuDevicePrimaryCtxRetain") else 1
        printed = program.run("none", name, "1", str(is_load)).strip()
        # what remains is the primary context, which is kept
        assert printed == f"{name} 1: 2, held {held}, then 0, unload 0, held 1"


def test_an_unload_that_fails(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    body = """
  use_device(0);
  add_alpha_default(NULL, 0, 0, 5);
  fail("cuLibraryUnload", 1, 4);
  printf("%s, ", deuteron_status_string(unload_add_alpha()));
  printf("%s, ", deuteron_status_string(unload_add_alpha()));
  printf("%s\\n", deuteron_status_string(add_alpha_default(NULL, 0, 0, 5)));
"""
    assert gpu.program(body).run() == "deinitialized, success, success\n"


STATUS = 'printf("%d %s\\n", (int)add_alpha_default(NULL, 0, 0, 5), deuteron_status_string(load_add_alpha()));'


def test_no_driver(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    printed = gpu.program(STATUS, flags=SANITIZED).run(LD_LIBRARY_PATH=str(gpu.folder))
    assert printed == "35 no driver\n"


@pytest.mark.parametrize("missing", ["cuLibraryLoadData", "cuKernelSetAttribute", "cuInit", "cuLaunchKernel"])
def test_a_driver_without_a_function(gpu: FakeGpu, missing: str):
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    program = gpu.program(STATUS, flags=SANITIZED)
    old = build_driver(gpu.folder / "old", [missing])
    assert program.run(LD_LIBRARY_PATH=str(old)) == "36 old driver\n"


@pytest.mark.parametrize(("capabilities", "status"), [("0", "100 no device"), ("80, 0", "209 unsupported device")])
def test_no_device_that_fits(gpu: FakeGpu, capabilities: str, status: str):
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    body = f"static const int found[] = {{{capabilities}}};\n  devices(found);\n  {STATUS}"
    assert gpu.program(body, flags=SANITIZED).run() == f"{status}\n"


def test_a_damaged_cubin(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1", image=b"\x7fELF")
    gpu.link()
    body = f'use_device(0);\n  {STATUS}\n  printf("%d\\n", leaks());'
    assert gpu.program(body, flags=SANITIZED).run() == "200 invalid image\n1\n"


def test_a_load_that_fails_on_the_second_kernel_takes_the_first_back(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.emit_cuda("*fp32, fp32, i32, 256", "1")
    gpu.link()
    body = """
  use_device(0);
  fail("cuLibraryLoadData", 2, 2);
  printf("%d ", (int)load_add_alpha());
  printf("%d ", leaks() - 1);
  printf("%d ", (int)load_add_alpha());
  printf("%d\\n", leaks() - 1);
"""
    assert gpu.program(body, flags=SANITIZED).run() == "2 0 0 2\n"
