"""Launches on the CPU: shapes of arrays, threads, lifetime, caches in memory, the interpreter on the same arguments."""

import gc
import threading

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.errors import LaunchError, MemoryAccessError


@deuteron.jit
def copy(x_ptr, out_ptr, x_stride, out_stride, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i * x_stride, mask=i < n)
    tl.store(out_ptr + i * out_stride, x, mask=i < n)


@pytest.fixture(autouse=True, params=["cpu", "interpreter"])
def executor(request, monkeypatch):
    monkeypatch.setenv("DEUTERON_INTERPRET", str(int(request.param == "interpreter")))
    return request.param


def launch(x, out, n, block=32):
    strides = (array.strides[0] // array.itemsize for array in (x, out))
    copy[lambda meta: (deuteron.cdiv(n, meta["BLOCK"]),)](x, out, *strides, n, BLOCK=block)


@pytest.mark.parametrize("step", [1, 2, 3, -1, -2])
def test_strided_and_reversed_arrays(rng, step):
    x = rng.standard_normal(100)[::step]
    out = np.full(2 * len(x), np.nan)
    launch(x, out[::2], len(x))
    np.testing.assert_array_equal(out[::2], x)
    assert np.isnan(out[1::2]).all()


class Array:
    """One of another library, with a slot that its objects do not have, as JAX's on GPUs."""

    __slots__ = ("base", "buffer")

    def __init__(self, base):
        self.base = base

    @property
    def __array_interface__(self):
        return self.base.__array_interface__


def _refuse(array):
    raise TypeError("descriptor 'buffer' does not apply")


Array.buffer = property(_refuse)


@deuteron.jit
def twice(arrays, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(arrays[1] + i, 2 * tl.load(arrays[0] + i, mask=i < n), mask=i < n)


def test_attributes_of_an_array_do_not_count(rng):
    x, out = rng.standard_normal(20), np.zeros(20)
    copy[(1,)](Array(x), out, 1, 1, 20, BLOCK=32)
    np.testing.assert_array_equal(out, x)
    twice[(1,)]((Array(x), out), 20, BLOCK=32)
    np.testing.assert_array_equal(out, 2 * x)


def test_an_array_that_starts_off_alignment(rng):
    x = rng.integers(0, 100, 101).astype(np.int8)[1:]
    out = np.full(103, -1, np.int8)
    launch(x, out[3:], 100)
    np.testing.assert_array_equal(out, [-1] * 3 + list(x))


def test_empty_arrays():
    launch(np.zeros(0), np.zeros(0), 0)


def test_one_element():
    out = np.zeros(2)
    launch(np.array([5.0]), out, 1)
    assert out.tolist() == [5.0, 0.0]


def test_a_read_only_array_can_be_read(rng):
    x = rng.standard_normal(10)
    x.flags.writeable = False
    out = np.zeros(10)
    launch(x, out, 10)
    np.testing.assert_array_equal(out, x)


def test_the_interpreter_refuses_to_write_to_a_read_only_array(executor):
    if executor != "interpreter":
        return
    out = np.zeros(10)
    out.flags.writeable = False
    with pytest.raises(MemoryAccessError, match="Read-only store"):
        launch(np.ones(10), out, 10)
    assert not out.any()


def test_a_broadcast_array():
    out = np.zeros(10)
    copy[(1,)](np.broadcast_to(np.array(7.0), 10), out, 0, 1, 10, BLOCK=16)
    assert out.tolist() == [7.0] * 10


def test_temporary_arrays_live_as_long_as_the_launch():
    out = np.zeros(100_000)
    gc.freeze()  # what other tests have left is not looked at again and again
    try:
        for number in range(20):
            launch(np.full(100_000, float(number)), out, 100_000, block=4096)
            gc.collect()
            assert (out == number).all()
    finally:
        gc.unfreeze()


@deuteron.jit
def accumulate(out_ptr, value):
    tl.atomic_add(out_ptr + tl.program_id(0), value)


def test_threads_launch_one_kernel_at_once(executor):
    out = np.zeros(64)
    count = 50 if executor == "cpu" else 2

    def work():
        for _ in range(count):
            accumulate[(64,)](out, 0.5)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if executor == "cpu":  # the interpreter runs one program at a time, and only in its own launch
        assert (out == 8 * count * 0.5).all()
    else:
        assert (out > 0).all()


@pytest.mark.parametrize("grid", [(0,), (3, 0, 2)])
def test_an_empty_grid_runs_nothing(grid):
    out = np.zeros(4)
    accumulate[grid](out, 1.0)
    assert not out.any()


def test_all_three_dimensions_of_a_grid():
    @deuteron.jit
    def number(out_ptr):
        x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
        place = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
        tl.store(out_ptr + place, x + 10 * y + 100 * z)

    out = np.full((2, 3, 5), -1)
    number[(5, 3, 2)](out)
    z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(out, x + 10 * y + 100 * z)


@deuteron.jit
def store_scalar(out_ptr, value):
    tl.store(out_ptr, value)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.int32, 1),
        (np.int32, -(2**31)),
        (np.int64, 2**40),
        (np.int64, -(2**63)),
        (np.uint64, 2**64 - 1),
        (np.float32, 0.1),
        (np.float64, np.float64(0.1)),
        (np.float32, np.float16(0.1)),
        (np.bool_, True),
        (np.bool_, False),
        (np.int8, np.int8(-5)),
        (np.uint16, np.uint16(60000)),
    ],
)
def test_scalars_arrive_with_their_value(dtype, value):
    out = np.array([77], dtype)
    store_scalar[(1,)](out, value)
    assert out[0] == dtype(value)


def test_none_is_known_when_compiling():
    @deuteron.jit
    def choose(out_ptr, other_ptr):
        if other_ptr is None:
            tl.store(out_ptr, 1)
        else:
            tl.store(out_ptr, tl.load(other_ptr))

    out = np.zeros(1, np.int32)
    choose[(1,)](out, None)
    assert out[0] == 1
    choose[(1,)](out, np.array([5], np.int32))
    assert out[0] == 5


def test_a_constexpr_can_be_a_function_a_dtype_or_a_string():
    @deuteron.jit
    def twice(x):
        return 2 * x

    @deuteron.jit
    def apply(out_ptr, fn: tl.constexpr, dtype: tl.constexpr, mode: tl.constexpr):
        value = fn(tl.full((1,), 3, dtype))
        if mode == "negate":
            value = -value
        tl.store(out_ptr + tl.arange(0, 1), value)

    out = np.zeros(1, np.float32)
    apply[(1,)](out, twice, tl.float32, "negate")
    assert out[0] == -6
    apply[(1,)](out, twice, tl.int32, mode="keep")
    assert out[0] == 6


def test_a_wrong_keyword_in_every_executor():
    with pytest.raises(LaunchError, match="'BLOK' is none of these and no option"):
        accumulate[(1,)](np.zeros(1), 1.0, BLOK=5)


def test_autotuned_and_with_heuristics(rng):
    @deuteron.autotune(configs=[deuteron.Config({"BLOCK": b}) for b in (16, 64)], key=["n"], warmup=1, rep=2)
    @deuteron.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    @deuteron.jit
    def double(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        if EVEN:
            tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))
        else:
            tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

    double.restore_value.append("x_ptr")
    for n in (64, 77):
        x = rng.standard_normal(n)
        expected = 2 * x
        double[lambda meta: (deuteron.cdiv(meta["n"], meta["BLOCK"]),)](x, n)
        np.testing.assert_array_equal(x, expected)
