"""A launch from Python, by a thread that rounds upward; C programs are in tests/aot/test_floating_environment.py."""

import ctypes
import ctypes.util

import numpy as np
import pytest

import deuteron
import deuteron.language as tl
from deuteron.backend.llvm.targets import machine

UPWARD = {"x86_64": 0x800, "aarch64": 0x400000}[machine()]


@deuteron.jit
def functions(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=1.0)
    tl.store(out + i, tl.exp(a) / 3 + tl.sin(a), mask=i < n)


@pytest.fixture
def rounds_upward():
    math = ctypes.CDLL(ctypes.util.find_library("m"))

    def begin():
        assert math.fesetround(UPWARD) == 0

    yield begin
    math.fesetround(0)


def test_a_launch_rounds_to_nearest(rounds_upward):
    x = np.random.default_rng(0).uniform(-10, 10, 10_007).astype(np.float32)
    out, other = np.empty_like(x), np.empty_like(x)
    functions[(deuteron.cdiv(x.size, 64),)](x, out, x.size, BLOCK=64)
    rounds_upward()
    for _ in range(4):  # at first by Python, then by machine code
        functions[(deuteron.cdiv(x.size, 64),)](x, other, x.size, BLOCK=64)
        assert (out == other).all()
