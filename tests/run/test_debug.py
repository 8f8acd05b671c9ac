"""`device_print`, `static_print`, `static_assert` and `debug_barrier`: where their words go."""

import ctypes

import numpy as np
import pytest

import deuteron as triton
import deuteron.language as tl


@triton.jit
def print_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.static_print("block is", BLOCK)
    total = tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0)
    tl.debug_barrier()
    tl.device_print("the total", total)


def test_prints(capfd):
    print_kernel[(1,)](np.arange(8, dtype=np.int32), BLOCK=8)
    ctypes.CDLL(None).fflush(None)  # a kernel prints with C's buffers
    printed = capfd.readouterr().out
    assert "block is 8" in printed
    assert "the total" in printed
    assert "28" in printed


@triton.jit
def print_lines_kernel(M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    print("done 100%")
    tl.device_print("place", i * N + j, j < 3)


def test_lines_are_those_of_triton(capfd):
    """Indices have as many columns as the largest of their axis; what is printed together may have several shapes."""
    print_lines_kernel[(1, 2)](M=2, N=16)
    ctypes.CDLL(None).fflush(None)
    expected = [f"pid (0, {program}, 0) done 100%" for program in range(2)]
    for program, i, j in np.ndindex(2, 2, 16):
        start = f"pid (0, {program}, 0) idx ({i}, {j:2}) place: "
        expected += [f"{start}(operand 0) {i * 16 + j}"]
        expected += [f"{start}(operand 1) {int(j < 3)}"] if i == 0 else []
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(expected)


@triton.jit
def assert_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 32 == 0, "BLOCK is a multiple of 32")
    tl.store(x_ptr + tl.arange(0, BLOCK), BLOCK)


def test_static_assert(poisoned, check):
    out = poisoned("int32", 32)
    assert_kernel[(1,)](out, BLOCK=32)
    check(out, np.full(32, 32))
    with pytest.raises(triton.CompilationError, match="BLOCK is a multiple of 32"):
        assert_kernel[(1,)](out, BLOCK=16)
