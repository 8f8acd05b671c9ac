"""What it costs to check every access: `python -m benchmarks.checked`. Kernels on one thread, in memory that is cached.

Each launch runs 256 times as many programs as there are parts, so that what a launch costs does not count.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import deuteron as triton
import deuteron.language as tl

REPEATS = 256
SIZE = 8192


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask) + tl.load(y_ptr + i, mask), mask)


@triton.jit
def gather(x_ptr, index_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + tl.load(index_ptr + i)))


@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * n + i, e / tl.sum(e, 0), i < n)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr):
    i, j, k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK), tl.arange(0, 32)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, n, 32):
        a = tl.load(a_ptr + i[:, None] * n + (first + k)[None, :])
        total += tl.dot(a, tl.load(b_ptr + (first + k)[:, None] * n + j[None, :]))
    tl.store(c_ptr + i[:, None] * n + j[None, :], total)


@triton.jit
def scale_strided(x_ptr, out_ptr, row_stride, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    place = row[:, None] * row_stride + column[None, :] * stride
    tl.store(out_ptr + place, 2 * tl.load(x_ptr + place))


@triton.jit
def count(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + i % 16, tl.load(x_ptr + i))


@triton.jit
def through_table(table_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x_ptr = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)


def cases() -> dict[str, Callable[[], None]]:
    """A launch for each kind of access."""
    rng = np.random.default_rng(0)
    x, y, out = (rng.random(SIZE, np.float32) for _ in range(3))
    index = rng.integers(0, SIZE, SIZE, np.int32)
    a, b, c = (rng.random((256, 256), np.float32) for _ in range(3))
    grid = (8, REPEATS)
    table = np.array([x.ctypes.data])
    return {
        "add, all lanes on": lambda: add[grid](x, y, out, SIZE, BLOCK=1024),
        "add, half of the lanes off": lambda: add[grid](x, y, out, SIZE // 2 + 1, BLOCK=1024),
        "softmax of 1000 columns": lambda: softmax[grid](x, out, 1000, BLOCK=1024),
        "gather": lambda: gather[grid](x, index, out, BLOCK=1024),
        "matmul": lambda: matmul[(4, REPEATS // 32)](a, b, c, 256, BLOCK=64),
        "strided columns": lambda: scale_strided[(4, REPEATS)](a, c, 256, 2, ROWS=16, COLUMNS=64),
        "through a table of addresses": lambda: through_table[grid](table, x, BLOCK=1024),
        "atomic_add": lambda: count[(1, 8)](x, out, BLOCK=1024),
    }


def seconds(launch: Callable[[], None], check: str) -> float:
    """The median of the fastest third of 30 launches."""
    os.environ["DEUTERON_CHECK"] = check
    launch()
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        launch()
        times.append(time.perf_counter() - begin)
    return statistics.median(sorted(times)[:10])


def main() -> None:
    os.environ |= {"DEUTERON_TARGET": "cpu", "DEUTERON_NUM_THREADS": "1"}
    print(f"{'':32}{'us':>10}{'checked':>10}{'times':>8}")
    for name, launch in cases().items():
        plain, checked = seconds(launch, "none"), seconds(launch, "bounds")
        print(f"{name:32}{1e6 * plain:10.0f}{1e6 * checked:10.0f}{checked / plain:8.2f}")


if __name__ == "__main__":
    main()
