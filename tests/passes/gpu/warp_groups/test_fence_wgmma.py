"""Fences stand between stores to shared memory and dots by wgmma, once, outside of loops where they can."""

import re

import numpy as np
import pytest
from backend.cuda.launching import compile_for
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

pytestmark = pytest.mark.usefixtures("by_pointers")

HALF, SINGLE = np.zeros(1 << 16, np.float16), np.zeros(1 << 16, np.float32)
NAMES = {
    "ttg.local_alloc": "alloc",
    "ttng.fence_async_shared": "fence",
    "ttg.barrier": "barrier",
    "ttng.warp_group_dot": "dot",
    "scf.for": "{",
    "scf.yield": "}",
}


def sequence(kernel) -> list[str]:
    found = (re.search(r'"((?:ttn?g|scf)\.[\w.]+)"', line) for line in generic_asm(kernel, "ttgir").splitlines())
    return [NAMES[match.group(1)] for match in found if match and match.group(1) in NAMES]


@deuteron.jit
def square(a, b, out, N: tl.constexpr):
    offsets = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x, y = tl.load(a + offsets), tl.load(b + offsets)
    tl.store(out + offsets, tl.dot(y, x, tl.dot(x, y)))


def test_each_thread_fences_its_stores_and_then_waits():
    kernel = compile_for("cuda:90", square, HALF, HALF, SINGLE, N=64)
    assert sequence(kernel)[:5] == ["alloc", "alloc", "fence", "barrier", "dot"]
    assert sequence(kernel).count("fence") == 1


@deuteron.jit
def powers(a, out, n, N: tl.constexpr):
    offsets = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    x, acc = tl.load(a + offsets), tl.zeros((N, N), tl.float32)
    for _ in range(n):
        acc = tl.dot(acc.to(tl.float16), x)
    tl.store(out + offsets, acc)


def test_what_a_loop_only_reads_is_fenced_before_it():
    kernel = compile_for("cuda:90", powers, HALF, SINGLE, 4, N=64)
    found = sequence(kernel)
    assert found.index("fence") < found.index("{") and found.count("fence") == 1


@deuteron.jit
def matmul(a, b, out, n, N: tl.constexpr):
    offsets = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for step in range(n):
        acc = tl.dot(tl.load(a + step * N * N + offsets), tl.load(b + step * N * N + offsets), acc)
    tl.store(out + offsets, acc)


def test_what_a_loop_stores_is_fenced_in_every_iteration():
    for num_stages in (1, 3):
        found = sequence(compile_for("cuda:90", matmul, HALF, HALF, SINGLE, 4, N=64, num_stages=num_stages))
        inside = found[found.index("{") : found.index("}")]
        assert inside.count("fence") == 1 and inside.index("fence") < inside.index("dot")


def test_other_targets_need_none():
    assert "fence" not in sequence(compile_for("cuda:80", square, HALF, HALF, SINGLE, N=64))
