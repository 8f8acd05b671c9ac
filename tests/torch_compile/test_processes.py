"""torch.compile in processes of its own: compile workers, its caches on disk and taken elsewhere, other backends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deuteron

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

SOURCES = Path(deuteron.__file__).parents[1]
PACKAGE = Path(__file__).parents[2] / "packages" / "triton-deuteron"

PROGRAM = """
import sys, torch
torch._inductor.config.cpu_backend = "triton"
from deuteron.compiler import driver
from torch._dynamo.utils import counters

compiled_here = []
run_stages = driver._run_stages
driver._run_stages = lambda *args: compiled_here.append(args) or run_stages(*args)

def f(x):
    return (x.sin() + 1).sum()

def run():
    x = torch.linspace(-3, 3, 3000).reshape(60, 50)
    torch.testing.assert_close(torch.compile(f, fullgraph=True)(x).double(), f(x.double()), rtol=1e-5, atol=1e-5)
"""

WITH_WORKERS = """
from functools import partial

IMPORTED = "{'deuteron.frontend.lower', 'deuteron.backend.cuda.lowering'} <= __import__('sys').modules.keys()"

if __name__ == "__main__":
    from torch._inductor.async_compile import AsyncCompile
    torch._inductor.config.compile_threads = 2
    AsyncCompile.wait_pool_ready()
    assert AsyncCompile.process_pool().submit(partial(eval, IMPORTED)).result(), "a worker begins with what compiles"
    run()
    assert not compiled_here, "the workers compile"
"""

FIRST = """
torch._inductor.config.compile_threads = 1
run()
assert len(compiled_here) == counters["inductor"]["async_compile_cache_miss"] > 0
open(sys.argv[1], "wb").write(torch.compiler.save_cache_artifacts()[0])
"""

AGAIN = """
torch._inductor.config.compile_threads = 1
if len(sys.argv) > 1:
    torch.compiler.load_cache_artifacts(open(sys.argv[1], "rb").read())
run()
assert not compiled_here and counters["inductor"]["fxgraph_cache_hit"] == 1
"""

USER_KERNELS = """
import triton, triton.language as tl
from triton.language import load, program_id, store
from torch._higher_order_ops.triton_kernel_wrap import identify_accessed_tensors

FACTOR: tl.constexpr = tl.constexpr(3)

@triton.jit
def scaled(value):
    return value * FACTOR

@triton.jit
def plain(x, y, n, BLOCK: tl.constexpr):
    i = program_id(0) * BLOCK + tl.arange(0, BLOCK)
    store(y + i, scaled(load(x + i, mask=i < n)), mask=i < n)

@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"], reset_to_zero=["x"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def added(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x + i, 0.0 if EVEN else 2.0, mask=i < n)

def f(x):
    w, y, z = torch.zeros_like(x), torch.empty_like(x), torch.empty_like(x)
    added[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](w, x.numel())
    plain[(triton.cdiv(x.numel(), 128),)](x.sin(), y, x.numel(), BLOCK=128)
    tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](y, z, x.numel())
    return z.cos() + y, w

if __name__ == "__main__":
    torch._inductor.config.compile_threads = 1
    x = torch.linspace(-3, 3, 1000)
    accesses = identify_accessed_tensors(plain, {"x": x, "y": x, "n": 1000, "BLOCK": 128}, {}).read_writes
    assert [[d.name for d in found] for found in (accesses.reads, accesses.writes)] == [["x"], ["y"]]
    y = 3 * x.sin()
    torch.testing.assert_close(torch.compile(f, fullgraph=True)(x), ((y + 1).cos() + y, torch.full_like(x, 2)))
"""

OTHER_BACKEND = """
import deuteron.compat, torch
if __name__ == "__main__":
    torch._inductor.config.compile_threads = 1
    x = torch.linspace(-3, 3, 100)
    torch.testing.assert_close(torch.compile(lambda x: x.sin() + 1)(x), x.sin() + 1)
"""


def run(tmp_path, code, *args, cache="cache", folders=(PACKAGE, SOURCES)):
    """Run a program in a file, with a cache of its own."""
    program = tmp_path / "program.py"
    program.write_text(code)
    environment = {name: value for name, value in os.environ.items() if "CACHE_DIR" not in name}
    environment |= {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / cache), "PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = subprocess.run([sys.executable, program, *args], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_the_workers_compile(tmp_path):
    run(tmp_path, PROGRAM + WITH_WORKERS)


def test_what_was_compiled_is_found_again_and_elsewhere(tmp_path):
    taken = str(tmp_path / "taken")
    run(tmp_path, PROGRAM + FIRST, taken)
    run(tmp_path, PROGRAM + AGAIN)
    run(tmp_path, PROGRAM + AGAIN, taken, cache="elsewhere")


def test_kernels_of_the_user(tmp_path):
    assert "assuming every input is mutated" not in run(tmp_path, PROGRAM + USER_KERNELS)


def test_other_backends_work_with_the_paths_alone(tmp_path):
    """`import deuteron.compat` without the package: compile workers then have no module `triton`."""
    run(tmp_path, OTHER_BACKEND, folders=[SOURCES])
