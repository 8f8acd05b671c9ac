"""Two iterations of loops that load ahead are one, so that what they load is in registers in turns."""

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate
from ir_text import generic_asm

import deuteron
import deuteron.language as tl

X = aligned(np.zeros(1 << 14, np.float32))
INDEX = aligned(np.zeros(1 << 14, np.int32))
HALVES = aligned(np.zeros(1 << 14, np.float16))


@deuteron.jit
def kernel(x, index, o, first, n, stride, STEP: tl.constexpr, N: tl.constexpr, CASE: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    last = tl.zeros((N,), tl.float32)
    for k in tl.range(first, n, STEP, loop_unroll_factor=1):
        row = tl.load(index + k) if CASE == "index" else k
        v = tl.load(x + row * stride + i, mask=i < stride, other=0.0).to(tl.float32)
        if CASE == "reduction":
            total += tl.sum(v * i, 0) * v
        total = total * 0.5 + v
        last = v + k
        if CASE == "stores":
            tl.store(o + k * stride + i, total, mask=i < stride)
    if CASE != "stores":
        tl.store(o + i, total)
        tl.store(o + N + i, last)


def copies(case, *, first=0, n=100, step=1, size=128, x=X, num_warps=4):
    """How often the body of the loop is there."""
    compiled = compile_for(
        "cuda:90", kernel, x, INDEX, X, first, n, 100, STEP=step, N=size, CASE=case, num_warps=num_warps
    )
    loop = generic_asm(compiled, "ttgir").split('"scf.for"')[1].split('"scf.yield"')[0]
    return loop.count('"arith.mulf"')


@pytest.mark.parametrize("case", ["plain", "stores", "index"])
def test_two_iterations_are_one(case):
    assert copies(case) == 2


def test_much_is_loaded_at_once():
    assert copies("plain", size=2048) == 2  # 16 registers
    assert copies("plain", size=4096) == 1
    assert copies("plain", size=1024, x=HALVES[1:]) == 2  # eight halves, each by itself
    assert copies("plain", size=2048, x=HALVES[1:]) == 1


@pytest.mark.parametrize(("case", "size", "kept"), [("plain", 512, 2), ("plain", 256, 0), ("index", 512, 0)])
def test_iterations_are_kept_apart_where_all_loads_are_wide(case, size, kept):
    """ptxas would put the loads of one behind the sums of the other."""
    compiled = compile_for("cuda:90", kernel, X, INDEX, X, 0, 100, 128, STEP=1, N=size, CASE=case, num_warps=4)
    assert compiled.asm["ptx"].count("pmevent") == kept


@deuteron.jit
def scalars(x, o, n):
    total = 0.0
    for k in range(n):
        total += tl.load(x + k)
    tl.store(o, total)


def test_scalars_alone(rng):
    x, o = rng.standard_normal(100).astype(np.float32), np.full(1, np.nan, np.float32)
    emulate(scalars, x, o, 100)
    np.testing.assert_allclose(o, x.sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", ["plain", "stores", "index"])
@pytest.mark.parametrize(
    ("first", "n", "step"), [(0, 0, 1), (0, 1, 1), (0, 2, 1), (0, 7, 1), (3, 9, 1), (0, 7, 3), (1, 9, 2), (5, 3, 1)]
)
def test_the_same_results(rng, case, first, n, step):
    stride, size = 100, 128
    x, index = rng.standard_normal((10, stride)).astype(np.float32), rng.integers(0, 10, 16).astype(np.int32)
    o = np.full((10, stride), 7, np.float32)
    emulate(kernel, x, index, o, first, n, stride, STEP=step, N=size, CASE=case, num_warps=4)
    total, last, stored = np.zeros(size), np.zeros(size), np.full((10, stride), 7.0)
    for k in range(first, n, step):
        v = np.zeros(size)
        v[:stride] = x[index[k] if case == "index" else k]
        total, last = total * 0.5 + v, v + k
        if case == "stores":
            stored[k] = total[:stride]
    if case != "stores":
        stored.ravel()[: 2 * size] = np.concatenate([total, last])
    np.testing.assert_allclose(o, stored, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("step", [2, 3, 5])
@pytest.mark.parametrize("length", [1, 2, 5, 6, 9])
def test_an_end_near_the_largest_number(rng, step, length):
    """The index after the last one wraps, and is before the end again: the emulator knows where the rows end."""
    most = (1 << 31) - 1
    rows = range(0, length, step)
    x, o = rng.standard_normal((rows[-1] + 1, 128)).astype(np.float32), np.zeros(128, np.float32)
    emulate(at_the_end, x, o, most - length, most, STEP=step, N=128, num_warps=4)
    np.testing.assert_allclose(o, sum(x[row].astype(float) for row in rows), rtol=1e-5, atol=1e-5)


@deuteron.jit
def at_the_end(x, o, first, n, STEP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in tl.range(first, n, STEP, loop_unroll_factor=1):
        total += tl.load(x + (k - first) * N + i)
    tl.store(o + i, total)


@pytest.mark.parametrize("first", [2**31 - 302, 2**31 - 402])
def test_numbers_beyond_the_largest_in_the_second_of_two_iterations_alone(first):
    """A remainder of what is negative there has its sign."""
    x, o = np.zeros(8 * 16, np.int32), np.full(16, 9, np.int32)
    emulate(far_remainders, x, o, FIRST=first, END=2**31 - 1, num_warps=1)
    numbers = np.arange(first, 2**31 - 1, 100)[:, None] + np.arange(16)
    expected = np.zeros(16, np.int64)
    for row in numbers.astype(np.int32).astype(np.int64):
        expected = expected * 8 + np.fmod(row, 7)
    np.testing.assert_array_equal(o, expected)


@deuteron.jit
def far_remainders(x, o, FIRST: tl.constexpr, END: tl.constexpr):
    i = tl.arange(0, 16)
    total = tl.zeros((16,), tl.int32)
    for k in tl.range(FIRST, END, 100, flatten=True):
        total = total * 8 + (k + i) % 7 + tl.load(x + (k - FIRST) // 100 * 16 + i)
    tl.store(o + i, total)
