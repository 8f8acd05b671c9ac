"""On a GPU: arrays of several libraries, streams, threads, graphs, errors of the driver, times, the C++ program.

Where torch finds no GPU everything here is skipped.
"""

import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron import testing
from deuteron.errors import LaunchError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

ROOT = Path(__file__).resolve().parents[2]


@deuteron.jit
def scale(x_ptr, out_ptr, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


def launch(x, out, factor=2.0, n=1000):
    scale[(deuteron.cdiv(n, 128),)](x, out, factor, n, BLOCK=128)


def tensors(n=1000):
    return torch.randn(n, device="cuda"), torch.full((n + 8,), float("nan"), device="cuda")


def check(x, out, factor=2.0):
    torch.testing.assert_close(out[: len(x)], x * factor, rtol=0, atol=0)
    assert torch.isnan(out[len(x) :]).all()


def test_tensors_of_torch():
    x, out = tensors()
    launch(x, out)
    check(x, out)
    launch(x[1:], out[1:], n=999)
    check(x[1:], out[1:])


def test_the_current_stream_is_used():
    x, out = tensors()
    expected = torch.arange(1000, device="cuda", dtype=torch.float32)
    launch(x, out)  # compiles, which takes longer than the sleep
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # a launch on another stream would overtake what follows
        x.copy_(expected)
        launch(x, out)
    assert not stream.query()
    torch.cuda.synchronize()
    check(expected, out)


def test_a_thread_that_has_not_used_cuda():
    x, out = tensors()
    errors = []

    def work():
        try:
            launch(x, out)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert errors == []
    check(x, out)


def test_a_cuda_graph():
    x, out = tensors()
    launch(x, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(x, out, 3.0)
    x.fill_(5.0)
    graph.replay()
    torch.cuda.synchronize()
    check(x, out, 3.0)


@pytest.mark.parametrize("how", ["preload", "prepare"])
def test_a_first_launch_that_is_captured(how):
    @deuteron.jit
    def add_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) + 1, mask=i < n)

    x, out = tensors()
    told = []
    with deuteron.knobs.runtime.scope():
        deuteron.knobs.runtime.jit_post_compile_hook = lambda **about: told.append(about["compile"])
        add_one.warmup(x, out, 1000, grid=(8,), BLOCK=128)
    if how == "preload":
        add_one.device_caches.clear()
        add_one.preload(told[0]["specialization_data"])
    else:
        add_one.prepare(x, out, 1000, grid=(8,), BLOCK=128)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add_one[(8,)](x, out, 1000, BLOCK=128)
    x.fill_(5.0)
    graph.replay()
    torch.cuda.synchronize()
    assert (out[:1000] == 6).all() and torch.isnan(out[1000:]).all()


def test_launches_in_machine_code_on_streams_and_in_threads():
    x, out = tensors()
    expected = x * 2.0
    for _ in range(8):
        launch(x, out)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    x2 = torch.zeros_like(x)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # a launch on another stream would overtake what follows
        x2.copy_(x)
        launch(x2, out)
    assert not stream.query()
    torch.cuda.synchronize()
    torch.testing.assert_close(out[:1000], expected, rtol=0, atol=0)
    outs = [torch.full_like(out, float("nan")) for _ in range(8)]
    threads = [threading.Thread(target=lambda y: [launch(x, y, 3.0) for _ in range(500)], args=(y,)) for y in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    for y in outs:
        check(x, y, 3.0)


def test_cupy():
    cupy = pytest.importorskip("cupy")
    x, out = cupy.arange(1000, dtype=cupy.float32), cupy.zeros(1000, cupy.float32)
    with cupy.cuda.Stream() as stream:
        launch(x, out)
        stream.synchronize()
    np.testing.assert_array_equal(cupy.asnumpy(out), 2 * cupy.asnumpy(x))


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    for dtype in (jax.numpy.float32, jax.numpy.bfloat16):
        x = jax.numpy.arange(1000, dtype=dtype).block_until_ready()
        out = torch.zeros(1000, device="cuda")
        launch(x, out)
        torch.cuda.synchronize()
        np.testing.assert_array_equal(out.cpu().numpy(), 2 * np.asarray(x).astype(np.float32))


def test_arrays_on_the_cpu_run_on_the_cpu_and_may_not_be_mixed():
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    launch(x, out)
    np.testing.assert_array_equal(out, 2 * x)
    with pytest.raises(LaunchError, match="argument 'out_ptr' of kernel 'scale': it is on the CPU"):
        launch(tensors()[0], out)


@deuteron.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(b_ptr + (k + ks)[:, None] * N + columns[None, :], mask=columns[None, :] < N, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


@pytest.mark.parametrize(
    ("num_ctas", "tile"), [(2, (256, 128)), (2, (128, 256)), (2, (256, 256)), (4, (256, 256)), (8, (512, 64))]
)
def test_clusters(num_ctas, tile):
    """Blocks of a cluster load what they share once: boxes beside each other, and parts of a box."""
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("clusters need compute capability 9.0")
    M, N, K = 1000, 848, 640
    a, b = torch.randn((M, K), device="cuda").half(), torch.randn((K, N), device="cuda").half()
    c = torch.full((M, N), float("nan"), device="cuda")
    grid = deuteron.cdiv(M, tile[0]), deuteron.cdiv(N, tile[1])
    sizes = {"BLOCK_M": tile[0], "BLOCK_N": tile[1], "BLOCK_K": 64}
    kernel = matmul[grid](a, b, c, M, N, K, **sizes, num_warps=8, num_ctas=num_ctas)
    expected = a.double() @ b.double()
    torch.testing.assert_close(c.double(), expected, rtol=0, atol=1e-3 * expected.abs().max().item())
    assert ".multicast::cluster" in kernel.asm["ptx"] or torch.cuda.get_device_capability() != (9, 0)


def test_the_grids_limits():
    x, out = tensors()
    with pytest.raises(LaunchError, match="its extents go from 0 to"):
        scale[(1, 65536)](x, out, 2.0, 1000, BLOCK=128)
    scale[(1, 0)](x, out, 2.0, 1000, BLOCK=128)
    assert torch.isnan(out).all()


ILLEGAL = """
import torch
from tests.gpu.test_launching import launch, tensors
from deuteron.errors import LaunchError

x, out = tensors()
class Bad:
    dtype, device = x.dtype, x.device
    data_ptr = staticmethod(lambda: 16)
launch(Bad(), out)
try:
    torch.cuda.synchronize()
except Exception:
    pass
try:
    launch(x, out)
except LaunchError as error:
    print(error)
"""


def test_an_illegal_address_is_told_by_the_next_launch():
    done = subprocess.run([sys.executable, "-c", ILLEGAL], capture_output=True, text=True, cwd=ROOT)
    assert "kernel 'scale'" in done.stdout and "CUDA_ERROR_ILLEGAL_ADDRESS" in done.stdout, done.stderr


def test_times_are_plausible():
    """256 MB read and written: between 10 TB/s and 0.1 TB/s."""
    n = 1 << 26
    x = torch.zeros(n, device="cuda")
    milliseconds = testing.do_bench(lambda: launch(x, x, n=n), quantiles=[0.5])
    assert 0.05 < milliseconds < 5


def test_the_ahead_of_time_program(tmp_path: Path):
    program = 'import sys; sys.argv[0] = "deuteron"; from deuteron.tools.main import main; main()'
    (tmp_path / "deuteron").write_text(f"#!/bin/sh\nexec {sys.executable} -c '{program}' \"$@\"\n")
    (tmp_path / "deuteron").chmod(0o755)
    command = ["make", "-C", ROOT / "examples" / "aot", "cuda", f"DEUTERON={tmp_path}/deuteron", f"BUILD={tmp_path}/b"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "All results are right" in done.stdout
