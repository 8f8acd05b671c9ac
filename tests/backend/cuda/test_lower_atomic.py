"""Atomics: order and scope in the instruction, each element once, results for every thread."""

import ml_dtypes
import numpy as np
import pytest
from backend.cuda.launching import aligned, emulate, instructions_with

import deuteron
import deuteron.language as tl


@deuteron.jit
def add_tile(x, out, old, N: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr):
    i = tl.arange(0, N)
    before = tl.atomic_add(out + i % 4, tl.load(x + i), mask=i % 3 != 0, sem=SEM, scope=SCOPE)
    tl.store(old + i, before)


@pytest.mark.share(2)
@pytest.mark.parametrize("dtype", [np.int32, np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize(("size", "num_warps"), [(8, 4), (64, 1), (512, 4)])
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_add(rng, dtype, size, num_warps, target):
    x = (rng.integers(0, 2, size)).astype(dtype)
    out, old = np.zeros(4, dtype), np.full(size, 99, dtype)
    emulate(add_tile, x, out, old, N=size, SEM="acq_rel", SCOPE="gpu", num_warps=num_warps, target=target)
    i = np.arange(size)
    expected = [x[(i % 4 == slot) & (i % 3 != 0)].astype(np.float64).sum() for slot in range(4)]
    np.testing.assert_array_equal(out.astype(np.float64), expected)
    assert not old[i % 3 == 0].any() and (old.astype(np.float64) <= max(expected)).all()


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", ["gpu", "cta", "sys"])
def test_order_and_scope_of_a_tile(sem, scope):
    """One fence for all elements."""
    x, out, old = np.ones(64, np.int32), np.zeros(4, np.int32), np.zeros(64, np.int32)
    kernel = emulate(add_tile, x, out, old, N=64, SEM=sem, SCOPE=scope, num_warps=1)
    assert instructions_with(kernel, f"atom.relaxed.{scope}.global.add.u32")
    fences = {"relaxed": 0, "acquire": 1, "release": 1, "acq_rel": 2}[sem]
    assert len(instructions_with(kernel, f"fence.acq_rel.{scope}")) == fences


@deuteron.jit
def add_scalar(out, old, SEM: tl.constexpr, SCOPE: tl.constexpr):
    tl.store(old, tl.atomic_add(out, 1, sem=SEM, scope=SCOPE))


@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("scope", ["gpu", "cta", "sys"])
def test_order_and_scope_of_a_scalar(sem, scope):
    kernel = emulate(add_scalar, np.zeros(1, np.int32), np.zeros(1, np.int32), SEM=sem, SCOPE=scope, num_warps=1)
    assert instructions_with(kernel, f"atom.{sem}.{scope}.global.add.u32")


@deuteron.jit
def every_kind(out, v):
    tl.atomic_and(out, v)
    tl.atomic_or(out + 1, v)
    tl.atomic_xor(out + 2, v)
    tl.atomic_max(out + 3, v)
    tl.atomic_min(out + 4, v)
    tl.atomic_xchg(out + 5, v)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_kinds(dtype):
    out = np.array([12, 12, 12, 12, 12, 12], dtype)
    emulate(every_kind, out, 10)
    np.testing.assert_array_equal(out, [8, 14, 6, 12, 10, 10])


@deuteron.jit
def extremes(x, low, high, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.atomic_min(low + tl.arange(0, N) % 2, v)
    tl.atomic_max(high + tl.arange(0, N) % 2, v)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_extremes(rng, dtype):
    x = rng.standard_normal(64).astype(dtype)
    low, high = np.full(2, np.inf, dtype), np.full(2, -np.inf, dtype)
    emulate(extremes, x, low, high, N=64, num_warps=2)
    np.testing.assert_array_equal(low, x.reshape(-1, 2).min(0))
    np.testing.assert_array_equal(high, x.reshape(-1, 2).max(0))


@deuteron.jit
def take_number(counter, out, N: tl.constexpr):
    mine = tl.atomic_add(counter, 1)
    tl.store(out + mine * N + tl.arange(0, N), mine)


def test_every_thread_knows_the_result_of_a_scalar_atomic():
    counter, out = np.zeros(1, np.int32), np.full((5, 64), -1, np.int32)
    kernel = emulate(take_number, counter, out, N=64, grid=(5,), num_warps=4)
    np.testing.assert_array_equal(out, np.arange(5)[:, None].repeat(64, 1))
    # one before the release, one for the result
    assert counter[0] == 5 and len(instructions_with(kernel, "bar.sync")) == 2


@deuteron.jit
def compare_and_swap(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.atomic_cas(x + i, i, -i))


@pytest.mark.parametrize(("size", "num_warps"), [(16, 2), (128, 4)])
def test_compare_and_swap(rng, size, num_warps):
    x = np.where(rng.random(size) < 0.5, np.arange(size), 7777).astype(np.int32)
    got, out = x.copy(), np.zeros(size, np.int32)
    emulate(compare_and_swap, got, out, N=size, num_warps=num_warps)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(got, np.where(x == np.arange(size), -np.arange(size), x))


@deuteron.jit
def add_neighbours(x, out, old, n, N: tl.constexpr, SEM: tl.constexpr, USED: tl.constexpr):
    i = tl.arange(0, N)
    before = tl.atomic_add(out + i, tl.load(x + i), mask=i < n, sem=SEM)
    if USED:
        tl.store(old + i, before, mask=i < n)


VECTORS = [
    ("cuda:90", np.float32, "relaxed", False, "red.relaxed.gpu.global.add.v4.f32"),
    ("cuda:90", np.float32, "relaxed", True, "atom.relaxed.gpu.global.add.v4.f32"),
    ("cuda:90", np.float16, "release", False, "red.relaxed.gpu.global.add.noftz.v4.f16x2"),
    ("cuda:90", ml_dtypes.bfloat16, "acq_rel", False, "red.relaxed.gpu.global.add.noftz.v4.bf16x2"),
    ("cuda:90", ml_dtypes.bfloat16, "acq_rel", True, "atom.relaxed.gpu.global.add.noftz.v4.bf16x2"),
    ("cuda:80", np.float16, "relaxed", False, "red.relaxed.gpu.global.add.noftz.f16x2"),
    ("cuda:80", np.float16, "acquire", True, "atom.relaxed.gpu.global.add.noftz.f16x2"),
    ("cuda:80", np.float32, "relaxed", True, "atom.relaxed.gpu.global.add.f32"),
    ("cuda:80", np.float32, "acq_rel", False, "red.relaxed.gpu.global.add.f32"),
]


@pytest.mark.parametrize(("target", "dtype", "sem", "used", "instruction"), VECTORS)
def test_neighbours_are_added_to_together(rng, target, dtype, sem, used, instruction):
    size, n = 1024, 1008
    x, out = (aligned(rng.integers(-8, 8, size).astype(dtype)) for _ in range(2))
    old, before = aligned(np.full(size, 99, dtype)), out.copy()
    kernel = emulate(add_neighbours, x, out, old, n, N=size, SEM=sem, USED=used, num_warps=4, target=target)
    assert instructions_with(kernel, instruction)
    np.testing.assert_array_equal(out[:n], (before + x)[:n])
    np.testing.assert_array_equal(out[n:], before[n:])
    np.testing.assert_array_equal(old, np.where((np.arange(size) < n) & used, before, old))


def test_neighbours_that_may_be_masked_apart_are_added_to_alone(rng):
    x, out, old = (aligned(np.ones(256, np.float32)) for _ in range(3))
    kernel = emulate(add_neighbours, x, out, old, 99, N=256, SEM="relaxed", USED=False, num_warps=1, target="cuda:90")
    assert not instructions_with(kernel, "add.v")
    np.testing.assert_array_equal(out, 1 + (np.arange(256) < 99))
