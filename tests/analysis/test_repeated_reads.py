"""Which kernels read their rows again in each iteration of a loop, and what is told to ptxas of these."""

from __future__ import annotations

import numpy as np
import pytest
from backend.cuda.launching import compile_for

import deuteron
import deuteron.language as tl
from deuteron.analysis.repeated_reads import reads_rows_again
from deuteron.frontend import lower_function
from deuteron.ir.tt.function import functions_in
from deuteron.language.functions.function import Function


def bisection(x, out, n):
    row = x + tl.program_id(0) * n
    low = 0.0
    for _ in range(16):
        total = 0.0
        for start in range(0, n, 128):
            value = tl.load(row + start + tl.arange(0, 128))
            total += tl.sum(tl.where(value > low, value, 0.0))
        low += total
    tl.store(out + tl.program_id(0), low)


def advanced_pointers(x, out, n):
    for _ in range(16):
        places = x + tl.program_id(0) * n + tl.arange(0, 128)
        for _ in range(0, n, 128):
            tl.store(out + tl.arange(0, 128), tl.load(places))
            places += 128


def channels(x, out, n):
    for channel in range(16):
        for start in range(0, n, 128):
            tl.store(out + tl.arange(0, 128), tl.load(x + tl.program_id(0) + channel * n + start + tl.arange(0, 128)))


def carried_rows(x, out, n):
    row = x + tl.program_id(0) * n
    for _ in range(16):
        for start in range(0, n, 128):
            tl.store(out + tl.arange(0, 128), tl.load(row + start + tl.arange(0, 128)))
        row += n


def loaded_rows(x, out, n):
    for i in range(16):
        row = tl.load(out + i).to(tl.int32) + tl.program_id(0)
        for start in range(0, n, 128):
            tl.store(out + tl.arange(0, 128), tl.load(x + row + start + tl.arange(0, 128)))


def weights(x, out, n):
    for _ in range(16):
        for start in range(0, n, 128):
            tl.store(out + tl.program_id(0) + tl.arange(0, 128), tl.load(x + start + tl.arange(0, 128)))


def two_passes(x, out, n):
    row = x + tl.program_id(0) * n
    for _ in range(2):
        tl.store(out, 0.0)
    for start in range(0, n, 128):
        tl.store(out + tl.arange(0, 128), tl.load(row + start + tl.arange(0, 128)))


@pytest.mark.parametrize("kernel", [bisection, advanced_pointers])
def test_again(kernel):
    assert reads_rows_again(_lowered(kernel))


@pytest.mark.parametrize("kernel", [channels, carried_rows, loaded_rows, weights, two_passes])
def test_once(kernel):
    assert not reads_rows_again(_lowered(kernel))


def _lowered(kernel):
    types = {"x": "*fp32", "out": "*fp32", "n": "i32"}
    return functions_in(lower_function(Function(kernel), types, {}, {}))[0]


def test_one_program_on_a_multiprocessor_is_enough_for_them():
    x, out = np.zeros((2, 128), np.float32)
    for kernel, is_enough in ((bisection, True), (channels, False)):
        ptx = compile_for("cuda:90", deuteron.jit(kernel), x, out, 128).asm["ptx"]
        assert (".minnctapersm 1" in ptx) == is_enough
