"""On a GPU: configurations that are timed in CUDA graphs, and first launches of a process by many threads at once."""

import subprocess
import sys
from pathlib import Path

import pytest

import deuteron
import deuteron.language as tl
from deuteron import testing

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

CONFIGS = [deuteron.Config({"BLOCK": block}, num_warps=warps) for block in (256, 1024) for warps in (2, 4)]


@deuteron.autotune(CONFIGS, key=["n"], use_cuda_graph=True, restore_value=["x_ptr"], warmup=1, rep=4)
@deuteron.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def test_configurations_timed_in_a_graph():
    n = (1 << 20) + 3
    x = torch.randn(n, device="cuda")
    expected = x * 2
    double[lambda meta: (deuteron.cdiv(n, meta["BLOCK"]),)](x, n)
    torch.cuda.synchronize()
    torch.testing.assert_close(x, expected, rtol=0, atol=0)
    assert len(double.configs_timings) == len(CONFIGS)
    assert all(0.0005 < timings[0] < 1 for timings in double.configs_timings.values()), double.configs_timings


def test_a_graph_gives_the_time_of_the_kernel_alone():
    """A launch of a short kernel takes longer on the host than on the GPU, which times that begin on the host show."""
    x = torch.randn(1 << 16, device="cuda")
    in_graph = testing.do_bench_cudagraph(lambda: torch.add(x, 1, out=x), rep=10)
    assert 0.0005 < in_graph < 0.02


PROGRAM = """
import sys, threading
import torch
import deuteron
import deuteron.language as tl
from deuteron.runtime import fast_launch

fast_launch.FEW = fast_launch.MANY = 0  # machine code from the first launch on, so that the threads load it at once

@deuteron.jit
def scale(x_ptr, out_ptr, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i) * factor)

x = torch.randn(1024, device="cuda")
torch.cuda.synchronize()
barrier, wrong = threading.Barrier(16), []

def work(number):
    out = torch.zeros_like(x)
    barrier.wait()
    for _ in range(50):
        scale[(8,)](x, out, float(number), BLOCK=128)
    torch.cuda.synchronize()
    if not torch.equal(out, x * float(number)):
        wrong.append(number)

threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not wrong, wrong
print("right")
"""


def test_threads_whose_launches_are_the_first_of_the_process(tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for _ in range(3):
        done = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
