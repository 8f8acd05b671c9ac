"""Proxy fences stand between acquires and copies by TMA, and nowhere else."""

import re

import numpy as np
import pytest
from backend.cuda.launching import compile_for, emulate, instructions_with
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

X = np.zeros(1 << 12, np.float32)
FLAGS = np.ones(4, np.int32)


def fences_of(kernel) -> list[str]:
    """Atomics, barriers, proxy fences of global memory, and copies from there, in order."""
    names = {"tt.atomic_rmw": "atomic", "ttg.barrier": "barrier", "ttng.fence_async_global": "fence"}
    names["ttng.async_tma_copy_global_to_local"] = "copy"
    found = re.findall(r'"(tt[ng]?g?\.\w+)"\(', generic_asm(kernel, "ttgir"))
    return [names[name] for name in found if name in names]


@deuteron.jit
def copy_when_released(x, out, flags, N: tl.constexpr, SEM: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [N * 4, N], [N, 1], [N, N])
    pid = tl.program_id(0)
    while tl.atomic_add(flags + pid, 0, sem=SEM) != 1:
        pass
    tile = source.load([0, 0])
    i = tl.arange(0, N)
    tl.store(out + i[:, None] * N + i[None, :], tile + 1)


@pytest.mark.parametrize("sem", ["acquire", "acq_rel"])
def test_a_copy_after_an_acquire(rng, sem):
    x, out = rng.standard_normal((128, 32)).astype(np.float32), np.full((32, 32), np.nan, np.float32)
    kernel = emulate(copy_when_released, x, out, FLAGS, N=32, SEM=sem, target="cuda:90")
    np.testing.assert_array_equal(out, x[:32] + 1)
    found = fences_of(kernel)
    assert found.index("atomic") < found.index("fence") < found.index("copy")
    assert instructions_with(kernel, "fence.proxy.async.global")


def test_what_does_not_acquire():
    assert "fence" not in fences_of(compile_for("cuda:90", copy_when_released, X, X, FLAGS, N=32, SEM="relaxed"))


@deuteron.jit
def count_copies(x, out, flags, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [N * 4, N], [N, 1], [N, N])
    i = tl.arange(0, N)
    tl.store(out + i[:, None] * N + i[None, :], source.load([0, 0]))
    tl.atomic_add(flags, 1)


def test_no_copy_follows():
    assert fences_of(compile_for("cuda:90", count_copies, X, X, FLAGS, N=32)).count("fence") == 0


@deuteron.jit
def next_of_queue(x, out, flags, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [N * 4, N], [N, 1], [N, N])
    i = tl.arange(0, N)
    block = tl.atomic_add(flags, 1)
    while block < 4:
        tl.store(out + (block * N + i[:, None]) * N + i[None, :], source.load([block * N, 0]))
        block = tl.atomic_add(flags, 1)


def test_a_copy_of_the_next_iteration(rng):
    x, out = rng.standard_normal((128, 32)).astype(np.float32), np.full((128, 32), np.nan, np.float32)
    kernel = emulate(next_of_queue, x, out, np.zeros(1, np.int32), N=32, target="cuda:90")
    np.testing.assert_array_equal(out, x)
    assert fences_of(kernel).count("fence") == 2
