"""Loading and launching on a GPU: what the driver is told, on which device and stream, and its errors."""

from __future__ import annotations

import struct
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from backend.cuda.fake_driver import FakeDriver, Status

from deuteron.backend.cuda.launch import libcuda, map_encoder
from deuteron.backend.cuda.launch.driver import load_kernel
from deuteron.backend.cuda.launch.libcuda import CudaDriver
from deuteron.backend.metadata import KernelMetadata, make_param
from deuteron.backend.tensor_map import TensorMap
from deuteron.errors import LaunchError, OutOfResources
from deuteron.options import Target


def load(api, params=("x: *fp32", "n: i32"), num_warps=4, num_ctas=1, **found):
    named = tuple(make_param(*param.split(": ")) for param in params)
    api.num_params = len(named)
    options = {"num_warps": num_warps, "num_ctas": num_ctas}
    metadata = KernelMetadata("k", "k_symbol", Target("cuda", 90), options, named, **found)
    return load_kernel(b"cubin", metadata, CudaDriver(api))


@pytest.fixture
def api(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    return FakeDriver()


def test_what_a_launch_passes(api):
    launch = load(api, num_warps=8, shared=1024)
    launch((3, 2, 1), [0x7F0000001000, -2])
    (launched,) = api.launches
    assert launched.function == 77
    assert (launched.grid, launched.block, launched.shared, launched.stream) == ((3, 2, 1), (256, 1, 1), 1024, 0)
    assert launched.slots == (0x7F0000001000, 0xFFFFFFFE)
    assert ("cuLibraryLoadData", b"cubin", None, None, 0, None, None, 0) in api.calls
    assert ("cuLibraryGetKernel", "library", b"k_symbol") in api.calls


@pytest.mark.parametrize(
    ("type", "value", "packed"),
    [
        ("i1", True, b"\1"),
        ("i8", -1, b"\xff"),
        ("i64", -(2**63), struct.pack("<q", -(2**63))),
        ("u64", 2**64 - 1, b"\xff" * 8),
        ("i32", 2**32 + 5, b"\5"),
        ("fp16", 0.5, struct.pack("<f", 0.5)),
        ("bf16", 1e39, struct.pack("<f", float("inf"))),
        ("fp32", 3, struct.pack("<f", 3)),
        ("fp64", 0.1, struct.pack("<d", 0.1)),
    ],
)
def test_every_type_of_argument(api, type, value, packed):
    load(api, [f"a: {type}"])((1, 1, 1), [value])
    assert api.launches[0].slots[0].to_bytes(8, "little").startswith(packed)


def test_an_argument_that_is_no_number(api):
    with pytest.raises(LaunchError, match="argument 'n' of kernel 'k': expected i32, got 'five'"):
        load(api)((1, 1, 1), [0, "five"])
    assert not api.launches


@pytest.mark.parametrize("grid", [(0, 1, 1), (5, 0, 3), (1, 1, 0), (0, 70000, 1)])
def test_an_empty_grid_launches_nothing(api, grid):
    load(api)(grid, [0, 0])
    assert not api.launches


def test_more_programs_than_the_code_is_for(api):
    launch, launched = load(api, most_programs=2**20), []
    launch((2**20, 1, 1), [0, 0])
    assert len(api.launches) == 1
    with pytest.raises(
        LaunchError, match="at most 1048576 programs along the first axis, compile it with many_programs"
    ):
        launch((2**20 + 1, 1, 1), [0, 0])
    launch.launch_of_more = lambda programs: lambda *given, **where: launched.append((programs, *given))
    launch((2**20 + 1, 2, 1), [0, 5])
    assert launched == [(2**20 + 1, (2**20 + 1, 2, 1), [0, 5])]
    with pytest.raises(LaunchError, match="extents go from 0 to 2147483647"):
        launch((2**31, 1, 1), [0, 0])
    launch((2**20 + 1, 0, 1), [0, 0])
    assert len(api.launches) == len(launched) == 1


def test_rows_that_tma_does_not_copy(api, monkeypatch):
    """A map of 2 x 8 numbers whose stride is an argument."""
    argument, number = ("argument", 1, 32), ("constant", 8)
    described = TensorMap("fp32", (2, 8), 0, "zero", ("constant", 0), (number, number), (argument,), "k.py:3")
    monkeypatch.setattr(map_encoder, "encode_tiled", lambda described, values: bytes(128))
    launch, launched = load(api, tensor_maps=(replace(described, is_inferred=True),)), []
    launch((2, 1, 1), [0, 8])
    assert len(api.launches) == 1
    with pytest.raises(
        LaunchError, match="kernel 'k': what is loaded in k.py:3 .* is -32 bytes.*; compiled with plain"
    ):
        launch((2, 1, 1), [0, -8])
    launch.launch_of_pointers = lambda because: lambda *given, **where: launched.append((because[:16], *given))
    launch((2, 1, 1), [0, -8])
    assert launched == [("kernel 'k': what", (2, 1, 1), [0, -8])]
    with pytest.raises(LaunchError, match="the tensor descriptor in k.py:3 cannot be copied by TMA"):
        load(api, tensor_maps=(described,))((2, 1, 1), [0, -8])
    assert len(api.launches) == 1


@pytest.mark.parametrize("grid", [(2**31, 1, 1), (1, 65536, 1), (1, 1, 65536), (-1, 1, 1), (0, -1, 1)])
def test_an_impossible_grid(api, grid):
    with pytest.raises(LaunchError, match=r"grid of kernel 'k' is \(.*: its extents go from 0 to 2147483647, 65535,"):
        load(api)(grid, [0, 0])
    assert not api.launches


@pytest.mark.parametrize("grid", [(2**31 - 1, 1, 1), (1, 65535, 65535)])
def test_the_largest_grids(api, grid):
    load(api)(grid, [0, 0])
    assert api.launches[0].grid == grid


@pytest.mark.parametrize("grid", [(3, 2, 1), (2**28 - 1, 1, 65535)])
def test_a_program_that_is_a_cluster_launches_all_its_blocks(api, grid):
    load(api, num_ctas=8)(grid, [0, 0])
    assert api.launches[0].grid == (8 * grid[0], *grid[1:])


def test_a_grid_with_too_many_clusters(api):
    message = r"grid of kernel 'k' is \(268435456, 1, 1\): its extents go from 0 to 268435455, 65535, 65535"
    with pytest.raises(LaunchError, match=message):
        load(api, num_ctas=8)((2**28, 1, 1), [0, 0])
    assert not api.launches


@pytest.mark.parametrize(("shared", "told"), [(49152, []), (49153, [49153]), (232448, [232448])])
def test_shared_memory_above_48_kb_is_asked_for_once(api, shared, told):
    launch = load(api, shared=shared)
    for _ in range(3):
        launch((1, 1, 1), [0, 0])
    assert [call[2] for call in api.calls if call[0] == "cuKernelSetAttribute"] == told
    assert [launched.shared for launched in api.launches] == [shared] * 3


def test_more_shared_memory_than_the_device_has(api):
    with pytest.raises(OutOfResources, match="shared memory: the kernel needs 232449, the target has 232448"):
        load(api, shared=232449)((1, 1, 1), [0, 0])


def test_more_threads_than_the_kernel_may_have(api):
    api.attributes["MAX_THREADS_PER_BLOCK"] = 512
    with pytest.raises(OutOfResources, match="threads per block: the kernel needs 1024, the target has 512"):
        load(api, num_warps=32)((1, 1, 1), [0, 0])


def test_without_a_context_the_primary_one_of_device_0_is_made_current(api):
    load(api)((1, 1, 1), [0, 0])
    assert api.contexts == ["primary0"]


def test_the_context_of_the_program_is_used(api):
    api.contexts = ["own0"]
    launch = load(api)
    launch((1, 1, 1), [0, 0])
    assert api.launches[0].context == "own0"
    assert "cuDevicePrimaryCtxRetain" not in api.names()


def test_a_launch_on_another_device_leaves_the_current_one_as_it_was(api):
    api.capabilities, api.contexts = (90, 90), ["own0"]
    launch = load(api)
    launch((1, 1, 1), [0, 0], device=1)
    launch((1, 1, 1), [0, 0])
    launch((1, 1, 1), [0, 0], device=0)
    assert [launched.context for launched in api.launches] == ["primary1", "own0", "own0"]
    assert api.contexts == ["own0"]


def fake_torch(device, streams, is_initialised=True):
    cuda = SimpleNamespace(is_initialized=lambda: is_initialised, current_device=lambda: device)
    return SimpleNamespace(cuda=cuda, _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda index: streams[index]))


def test_the_current_device_and_stream_of_torch(api, monkeypatch):
    api.capabilities = (90, 90)
    monkeypatch.setitem(sys.modules, "torch", fake_torch(1, [100, 101]))
    launch = load(api)
    launch((1, 1, 1), [0, 0])
    launch((1, 1, 1), [0, 0], device=0)
    assert [(launched.context, launched.stream) for launched in api.launches] == [("primary1", 101), ("primary0", 100)]


def test_torch_that_does_not_use_cuda_is_not_asked(api, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", fake_torch(5, [], is_initialised=False))
    load(api)((1, 1, 1), [0, 0])
    assert api.launches[0].stream == 0


def test_the_current_stream_of_cupy(api, monkeypatch):
    stream = SimpleNamespace(ptr=55)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: stream)))
    load(api)((1, 1, 1), [0, 0])
    assert api.launches[0].stream == 55


def test_an_error_of_a_launch_has_its_name_and_the_kernels(api):
    launch = load(api)
    api.fail["cuLaunchKernel"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    message = (
        r"kernel 'k' for cuda:90, grid \(2, 1, 1\), 128 threads, .*: cuLaunchKernel failed with "
        r"CUDA_ERROR_ILLEGAL_ADDRESS \(700\). An earlier kernel"
    )
    with pytest.raises(LaunchError, match=message):
        launch((2, 1, 1), [0, 0])
    launch((2, 1, 1), [0, 0])
    assert len(api.launches) == 1


@pytest.mark.parametrize("function", ["cuLibraryLoadData", "cuLibraryGetKernel"])
def test_a_cubin_that_the_driver_does_not_take(api, function):
    api.fail[function] = Status.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(LaunchError, match=f"kernel 'k' for cuda:90 cannot be loaded: {function} failed with CUDA_ERR"):
        load(api)
    assert api.names().count("cuLibraryUnload") == (function == "cuLibraryGetKernel")


def test_a_device_that_cannot_run_the_kernel(api):
    api.capabilities = (80,)
    launch = load(api)
    api.fail["cuKernelGetAttribute"] = Status.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(LaunchError, match="cuda:90 cannot run on GPU 0, which has compute capability 8.0: cuKernelGet"):
        launch((1, 1, 1), [0, 0])


def test_threads_have_arguments_of_their_own(api):
    launch = load(api, ["n: i64"])
    launch((1, 1, 1), [-1])
    barrier = threading.Barrier(4)

    def work(number):
        barrier.wait()
        for i in range(200):
            launch((1, 1, 1), [1000 * number + i])

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = sorted(launched.slots[0] for launched in api.launches[1:])
    assert seen == sorted(1000 * number + i for number in range(4) for i in range(200))


def test_a_machine_without_a_gpu():
    api = FakeDriver(capabilities=())
    api.fail["cuInit"] = Status.CUDA_ERROR_NO_DEVICE
    with pytest.raises(LaunchError, match="cuInit failed with CUDA_ERROR_NO_DEVICE"):
        CudaDriver(api)


@pytest.mark.parametrize(
    ("status", "is_there"),
    [(None, True), (Status.CUDA_ERROR_NOT_INITIALIZED, True), (Status.CUDA_ERROR_NO_DEVICE, False)],
)
def test_a_gpu_is_there_after_a_fork(api, monkeypatch, status, is_there):
    """In a forked process the driver refuses what it did before; a compile there asks whether there is a GPU."""
    api.fail = {} if status is None else {"cuInit": status}
    monkeypatch.setattr(libcuda, "has_library", lambda: True)
    monkeypatch.setattr(libcuda, "cuda_driver", lambda: CudaDriver(api))
    assert libcuda.has_gpu() is is_there


def test_calls_after_a_fork_say_so(api):
    api.fail["cuInit"] = Status.CUDA_ERROR_NOT_INITIALIZED
    with pytest.raises(LaunchError, match="forked after CUDA was initialised; start processes by 'spawn'"):
        CudaDriver(api)


def test_no_memory_says_what_to_do_and_the_next_launch_goes_on(api):
    api.fail["cuLibraryLoadData"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(LaunchError, match=r"'k' for cuda:90 cannot be loaded: .*_MEMORY \(2\): the device has no"):
        load(api)
    launch = load(api)
    api.fail["cuLaunchKernel"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(LaunchError, match=r"'k' for cuda:90, grid \(1, 1, 1\).* no memory left for it; free arrays"):
        launch((1, 1, 1), [0, 0])
    launch((1, 1, 1), [0, 0])
    assert len(api.launches) == 1


def test_an_error_of_a_kernel_is_told_by_its_own_launch(api, monkeypatch):
    monkeypatch.setenv("DEUTERON_SYNC", "1")
    launch = load(api)
    launch((1, 1, 1), [0, 0], stream=5)
    assert api.calls[-1] == ("cuStreamSynchronize", 5)
    assert launch.native_launch(0) is None, "machine code waits for nothing"
    api.fail["cuStreamSynchronize"] = Status.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(LaunchError) as told:
        launch((7, 1, 1), [0, 0])
    assert "kernel 'k' for cuda:90, grid (7, 1, 1)" in str(told.value)
    assert str(told.value).endswith("cuStreamSynchronize failed with CUDA_ERROR_ILLEGAL_ADDRESS (700)")


def test_a_launch_that_is_captured_is_not_waited_for(api, monkeypatch):
    monkeypatch.setenv("DEUTERON_SYNC", "1")
    monkeypatch.setattr(type(api), "_StreamIsCapturing", lambda self, stream: (Status.CUDA_SUCCESS, 1), raising=False)
    load(api)((1, 1, 1), [0, 0])
    assert "cuStreamSynchronize" not in api.names()
