"""A slot less for two CTAs in the place of one, where threads copy what is at addresses that the loop loads."""

import re

import numpy as np
import pytest
from backend.cuda.launching import aligned, compile_for

import deuteron
import deuteron.language as tl

X = aligned(np.zeros(1 << 16, np.float16))
INDEX = aligned(np.zeros(1 << 10, np.int32))


@deuteron.jit
def row_of_blocks(a, b, c, columns, tile, n, N, BLOCK_N: tl.constexpr, CASE: tl.constexpr):
    i, j = tl.arange(0, 64), tl.arange(0, BLOCK_N)
    acc = tl.zeros((64, BLOCK_N), tl.float32)
    for k in range(tl.load(columns), n):
        column = k * k if CASE == "computed" else tl.load(columns + k)
        x = tl.load(a + k * 4096 + i[:, None] * 64 + i[None, :])
        acc = tl.dot(x, tl.load(b + (column * 64 + i)[:, None] * N + j[None, :], mask=(j < N)[None, :]), acc)
    tl.store(c + tile * 64 * N + i[:, None] * N + j[None, :], acc.to(tl.float16), mask=(j < N)[None, :])


@deuteron.jit
def blocks(a, b, c, columns, n, N, BLOCK_N: tl.constexpr, CASE: tl.constexpr):
    if CASE == "tiles":
        for tile in range(tl.program_id(0), 100):
            row_of_blocks(a, b, c, columns, tile, n, N, BLOCK_N, CASE)
    else:
        row_of_blocks(a, b, c, columns, tl.program_id(0), n, N, BLOCK_N, CASE)


@pytest.mark.parametrize(
    ("case", "size", "slots"), [("loaded", 256, 2), ("loaded", 128, 3), ("computed", 256, 3), ("tiles", 256, 3)]
)
def test_slots(case, size, slots):
    compiled = compile_for("cuda:90", blocks, X, X, X, INDEX, 30, 1024, BLOCK_N=size, CASE=case, num_warps=8)
    assert set(re.findall(rf"memdesc<(\d+)x64x{size}xf16", compiled.asm["ttgir"])) == {str(slots)}
