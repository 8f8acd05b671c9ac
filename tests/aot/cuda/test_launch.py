"""What the emitted C asks of the driver: one library, one launch, the arguments, the right device."""

import pytest
from aot.cuda.fake_gpu import FakeGpu
from aot.workspace import C99, CXX17, Parameter

SIGNATURE = "*fp32:16, fp32, i32, 128"
FIRST_LAUNCH = """cuInit cuDeviceGetCount cuCtxGetDevice cuDeviceGetAttribute cuDeviceGetAttribute cuLibraryLoadData
cuLibraryGetKernel cuLaunchKernel"""


# Of a kernel with more than 48 KB of shared memory: capability and how much there is.
ATTRIBUTES = " ".join(["cuDeviceGetAttribute"] * 3)


def launched(log: str) -> list[str]:
    """What followed each cuLaunchKernel, without the kernel's hash."""
    return [part.split(" ", 2)[2].strip() for part in log.split("cuLaunchKernel")[1:]]


def functions(log: str) -> str:
    return " ".join(word for word in log.split() if word.startswith("cu"))


@pytest.mark.parametrize("compiler", [C99, CXX17], ids=["c99", "c++17"])
def test_the_first_launch_loads_and_the_second_only_launches(gpu: FakeGpu, compiler: list[str]):
    gpu.emit_cuda(SIGNATURE, "cdiv(n, BLOCK), 3", shared=1024, num_warps=8)
    gpu.link()
    body = """
  use_device(0);
  printf("%d\\n", (int)add_alpha_default((CUstream)0x50, 0x7000, 1.0f, 1000));
  printf("%s\\n", calls());
  reset();
  printf("%d\\n", (int)add_alpha_default(NULL, 0x7010, -2.0f, 128));
  printf("%s\\n", calls());
"""
    first, log, second, again = gpu.program(body, compiler).run().splitlines()
    assert (first, second) == ("0", "0")
    assert functions(log).split() == FIRST_LAUNCH.split()
    assert functions(again) == "cuCtxGetDevice cuLaunchKernel"
    assert launched(log) == ["grid=8,3,1 block=256,1,1 shared=1024 stream=0x50 device=0 args=7000,3f800000,3e8,"]
    assert launched(again) == ["grid=1,3,1 block=256,1,1 shared=1024 stream=(nil) device=0 args=7010,c0000000,80,"]


@pytest.mark.parametrize(
    ("n", "status", "grid"),
    [(3, 0, "grid=12,3,1"), (2**29 - 1, 0, "grid=2147483644,3,1"), (2**29, 1, None), (2**61, 1, None), (0, 0, None)],
)
def test_a_program_that_is_a_cluster_launches_all_its_blocks(gpu: FakeGpu, n: int, status: int, grid: str | None):
    gpu.emit_cuda("*fp32:16, fp32, i64, 128", "n, 3", num_ctas=4)
    gpu.link()
    body = f"""
  use_device(0);
  printf("%d %s\\n", (int)add_alpha_default(NULL, 0x7000, 1.0f, {n}), calls());
"""
    printed = gpu.program(body, flags=["-O1", "-fsanitize=undefined", "-fno-sanitize-recover"]).run()
    assert printed.startswith(f"{status} ")
    assert [launch.split(" block")[0] for launch in launched(printed)] == [grid] * (grid is not None)


@pytest.mark.parametrize(
    ("limits", "most", "way_out"),
    [
        ({"num_ctas": 4}, 2**29 - 1, ""),
        ({"most_programs": 2**24}, 2**24, "; compiled with many_programs=True it takes 2147483647 along x"),
    ],
)
def test_why_a_grid_is_not_launched(gpu: FakeGpu, limits: dict[str, int], most: int, way_out: str):
    """What is said of the arguments is what comes of the launch."""
    gpu.emit_cuda("*fp32:16, fp32, i64, 128", "n, 3", **limits)
    gpu.link()
    body = f"""
  use_device(0);
  for (int64_t n = {most}; n <= {most + 1}; n++) {{
    const char *why;
    const int asked = (int)add_alpha_supports(NULL, 0x7000, 1.0f, n, 0, &why);
    printf("%d %d %s\\n", asked, (int)add_alpha_default(NULL, 0x7000, 1.0f, n), why);
  }}
"""
    fits, refused = gpu.program(body).run().splitlines()
    assert fits == "0 0 "
    assert refused == f"1001 1 the grid is larger than {most} x 65535 x 65535{way_out}"


def test_algorithms_with_and_without_clusters(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "n")
    gpu.emit_cuda(SIGNATURE, "n", num_ctas=2)
    gpu.link()
    header = (gpu.folder / "linked.h").read_text()
    assert "algo_id 0: BLOCK = 128, 4 warps, 3 stages\n" in header
    assert "algo_id 1: BLOCK = 128, 4 warps, 3 stages, 2 CTAs\n" in header
    body = """
  use_device(0);
  add_alpha(NULL, 0x7000, 1.0f, 5, 0);
  add_alpha(NULL, 0x7000, 1.0f, 5, 1);
  printf("%s\\n", calls());
"""
    first, second = launched(gpu.program(body).run())
    assert (first.split()[0], second.split()[0]) == ("grid=5,1,1", "grid=10,1,1")


ALL_TYPES = ["i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32", "fp64", "*fp16"]


def test_every_type_of_parameter(gpu: FakeGpu):
    params = [Parameter(f"p{i}") for i in range(len(ALL_TYPES))]
    gpu.emit_cuda(", ".join(ALL_TYPES), "1", params=params)
    gpu.link()
    body = """
  use_device(0);
  add_alpha_default(NULL, true, -1, -2, -3, -4, 255, 65535, 4294967295u, 18446744073709551615u, 1.0f, 2.0f, 0.5f,
                    1.0, 0x123456789abcu);
  printf("%s\\n", calls());
"""
    (launch,) = launched(gpu.program(body).run())
    assert launch.split("args=")[1] == (
        "1,ff,fffe,fffffffd,fffffffffffffffc,ff,ffff,ffffffff,ffffffffffffffff,3f800000,40000000,3f000000,"
        "3ff0000000000000,123456789abc,"
    )


@pytest.mark.parametrize(("shared", "told"), [(49152, 0), (49153, 1), (232448, 1)])
def test_shared_memory_above_48_kb_is_asked_for_once_on_each_device(gpu: FakeGpu, shared: int, told: int):
    gpu.emit_cuda(SIGNATURE, "1", shared=shared)
    gpu.link()
    body = """
  static const int two[] = {90, 90, 0};
  int i, wrong = 0;
  devices(two);
  for (i = 0; i < 6; i++) {
    use_device(i % 2);
    wrong += add_alpha_default(NULL, 0, 0, 5) != DEUTERON_SUCCESS;
  }
  printf("%d %s\\n", wrong, calls());
"""
    printed = gpu.program(body).run()
    assert printed.startswith("0 ")
    assert printed.count("cuKernelSetAttribute") == 2 * told
    assert printed.count("cuLibraryLoadData") == 1
    assert printed.count("device=1") == 3
    assert f"{shared}@1" in printed or not told


@pytest.mark.parametrize("current", [0, -1])
def test_a_launch_runs_on_the_device_of_its_stream(gpu: FakeGpu, current: int):
    """Seen on two H100: without this the driver refused kernels with more than 48 KB, and launched others there."""
    gpu.emit_cuda(SIGNATURE, "1", target="cuda:90", shared=100000)
    gpu.emit_cuda(SIGNATURE, "1", target="cuda:80")
    gpu.link()
    body = f"""
  static const int three[] = {{90, 90, 80, 0}};
  devices(three);
  use_device({current});
  printf("%d %s\\n", (int)add_alpha_default((CUstream)0x1000, 0, 0, 5), calls());
  reset();
  printf("%d %s\\n", (int)add_alpha_default((CUstream)0x1000, 0, 0, 5), calls());
  reset();
  printf("%d %s\\n", (int)add_alpha_default((CUstream)2, 0, 0, 5), calls());
"""
    first, second, default = gpu.program(body).run().splitlines()
    assert first.startswith("0 ") and "100000@1" in first and "device=1" in first
    assert second.startswith("0 ")
    assert functions(second) == ("cuStreamGetCtx cuCtxPushCurrent_v2 cuCtxGetDevice cuLaunchKernel cuCtxPopCurrent_v2")
    assert default.startswith("0 ") and "device=0" in default and "cuStreamGetCtx" not in default


def test_a_thread_without_a_context_borrows_the_primary_one_of_device_0(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    body = """
  int i;
  for (i = 0; i < 2; i++)
    printf("%d ", (int)add_alpha_default(NULL, 0, 0, 5));
  printf("%d %s\\n", leaks(), calls());
"""
    printed = gpu.program(body).run()
    assert printed.startswith("0 0 2 ")  # the library, and the primary context; none is left current
    assert printed.count("cuDevicePrimaryCtxRetain") == 1
    assert printed.count("cuCtxPushCurrent_v2") == printed.count("cuCtxPopCurrent_v2") == 2


def test_an_empty_grid_does_not_touch_the_driver(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "n, 1, 5")
    gpu.link()
    body = """
  printf("%d %d %d", (int)add_alpha_default(NULL, 0, 0, 0), (int)add_alpha_default(NULL, 0, 0, -7),
         (int)add_alpha(NULL, 0, 0, 5, 1));
  printf(" [%s]\\n", calls());
"""
    assert gpu.program(body).run() == "0 0 1 []\n"


def test_load_does_all_but_the_launch_and_unload_takes_it_back(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1", shared=100000)
    gpu.link()
    body = """
  use_device(0);
  printf("%d %d\\n", (int)load_add_alpha(), (int)load_add_alpha());
  printf("%s\\n", calls());
  reset();
  printf("%d\\n", (int)add_alpha_default(NULL, 0, 0, 5));
  printf("%s\\n", calls());
  printf("%d ", (int)unload_add_alpha());
  printf("%d ", leaks() - 1);
  printf("%d ", (int)unload_add_alpha());
  printf("%d\\n", leaks() - 1);
  reset();
  add_alpha_default(NULL, 0, 0, 5);
  unload_add_alpha();
  printf("%s\\n", calls());
"""
    loaded, log, result, launch, unloaded, again = gpu.program(body).run().splitlines()
    assert loaded == "0 0"
    assert functions(log) == (
        f"cuInit cuDeviceGetCount cuCtxGetDevice {ATTRIBUTES} cuLibraryLoadData cuLibraryGetKernel "
        "cuKernelSetAttribute cuKernelGetFunction "
        f"cuCtxGetDevice {ATTRIBUTES} cuKernelSetAttribute cuKernelGetFunction"
    )
    assert (result, functions(launch)) == ("0", "cuCtxGetDevice cuLaunchKernel")
    assert unloaded == "0 1 0 0"
    assert functions(again) == (
        f"cuCtxGetDevice {ATTRIBUTES} cuLibraryLoadData cuLibraryGetKernel "
        "cuKernelSetAttribute cuLaunchKernel cuLibraryUnload"
    )


def test_unloading_what_was_never_loaded(gpu: FakeGpu):
    gpu.emit_cuda(SIGNATURE, "1")
    gpu.link()
    assert gpu.program('printf("%d [%s]\\n", (int)unload_add_alpha(), calls());').run() == "0 []\n"
