"""Which rows of indices are carried as a number, and that kernels compute what they did."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for, emulate_compiled

import deuteron
import deuteron.language as tl


@deuteron.jit
def product(a, b, out, last, K, step, CASE: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK)
    if CASE == "loaded":
        k = tl.load(last + k)
    acc = tl.zeros([M, N], tl.float32)
    for start in range(0, K, BLOCK):
        inside = k < K
        x = tl.load(a + m[:, None] * K + k[None, :], mask=inside[None, :], other=0.0)
        if CASE == "once":
            y = tl.load(b + (start + tl.arange(0, BLOCK))[:, None] * N + n[None, :])
        else:
            y = tl.load(b + k[:, None] * N + n[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
        if CASE == "argument":
            k += step
        elif CASE == "swapped":
            k = BLOCK + k
        else:
            k += BLOCK
    tl.store(out + m[:, None] * N + n[None, :], acc)
    tl.store(last + tl.arange(0, BLOCK), k)


@pytest.mark.parametrize(
    ("case", "is_counted"),
    [("plain", True), ("swapped", True), ("argument", True), ("once", False), ("loaded", False)],
)
@pytest.mark.parametrize("num_stages", [1, 3])
def test_rows_along_two_axes_are_counted(rng, case, is_counted, num_stages):
    """What is carried besides: the sums. Where the loop leaves the row is known as well."""
    depth, block = 80, 32
    a = aligned(rng.integers(-3, 4, (16, depth)).astype(np.float16))
    b = aligned(rng.integers(-3, 4, (96 if case == "once" else depth, 32)).astype(np.float16))
    out, last = aligned(np.zeros((16, 32), np.float32)), aligned(np.arange(block, dtype=np.int32))
    constants = {"CASE": case, "M": 16, "N": 32, "BLOCK": block}
    kernel = compile_for("cuda:90", product, a, b, out, last, depth, block, **constants, num_stages=num_stages)
    loop = re.search(r"scf\.for .*iter_args.*-> \((.*)\) ", kernel.asm["ttgir"])
    assert ("tensor<32xi32" in loop[1]) == (not is_counted)
    emulate_compiled(kernel, a, b, out, last, depth, block)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ b[:depth].astype(np.float64))
    np.testing.assert_array_equal(last, np.arange(block) + 96)
