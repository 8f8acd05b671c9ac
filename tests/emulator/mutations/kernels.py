"""Kernels for what the examples do not use: scans, layouts, loads by warps of their own, TMA stores, clusters."""

from __future__ import annotations

import numpy as np
from backend.cuda.launching import aligned

import deuteron as triton
import deuteron.language as tl
from deuteron.tools.tensor_descriptor import TensorDescriptor


def _draw(rng: np.random.Generator, *shape: int, dtype: type = np.float32) -> np.ndarray:
    return aligned(rng.standard_normal(shape).astype(dtype))


def _empty(*shape: int) -> np.ndarray:
    return aligned(np.full(shape, np.nan, np.float32))


@triton.jit
def scan_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


def scan(rng):
    scan_kernel[(1,)](_draw(rng, 512), _empty(512), N=512)


@triton.jit
def scan_rows_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=True))


def scan_rows(rng):
    scan_rows_kernel[(1,)](_draw(rng, 32, 32), _empty(32, 32), M=32, N=32)


@triton.jit
def reduce_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + i)
    tl.store(out + tl.arange(0, N), tl.sum(tile, 0) + tl.argmax(tile, 0) + tl.max(tile))


def reduce(rng):
    reduce_kernel[(1,)](_draw(rng, 64, 32), _empty(32), M=64, N=32)


@triton.jit
def transpose_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tile.T)


def transpose(rng):
    transpose_kernel[(1,)](_draw(rng, 32, 64), _empty(64, 32), M=32, N=64)


@triton.jit
def loop_sums_kernel(x, out, n, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    total = tl.zeros((N,), tl.float32)
    for k in range(n):
        tile = tl.load(x + k * M * N + i)
        total += tl.cumsum(tl.sum(tile, 0) + tl.max(tile, 0), 0)
    tl.store(out + tl.arange(0, N), total)


def loop_sums(rng):
    loop_sums_kernel[(1,)](_draw(rng, 3, 32, 32), _empty(32), 3, M=32, N=32)


@triton.jit
def old_values_kernel(x, old, N: tl.constexpr):
    i = tl.arange(0, N)
    before = tl.atomic_add(x + i, 1.0)
    first = tl.atomic_add(x, 1.0)
    tl.store(
        old + tl.arange(0, N)[:, None] * 4 + tl.arange(0, 4)[None, :], (before + first)[:, None].broadcast_to(N, 4)
    )


def old_values(rng):
    old_values_kernel[(1,)](_draw(rng, 32), _empty(32, 4), N=32)


@triton.jit
def specialized_kernel(a, b, out, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        x = tl.load(a + rows[:, None] * K + k + ks[None, :])
        y = tl.load(b + (k + ks)[:, None] * N + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


def specialized(rng):
    a, b = _draw(rng, 128, 160, dtype=np.float16), _draw(rng, 160, 64, dtype=np.float16)
    specialized_kernel[(1,)](a, b, _empty(128, 64), 64, 160, BM=128, BN=64, BK=32, num_warps=8, num_stages=3)


@triton.jit
def chained_kernel(q, k, v, out, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, columns, dims = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + rows[:, None] * D + dims[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, n, BN, warp_specialize=True):
        y = tl.load(k + (start + columns)[:, None] * D + dims[None, :])
        z = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        p = tl.dot(x, y.T)
        acc = tl.dot((p - tl.max(p, 1)[:, None]).to(tl.float16), z, acc)
    tl.store(out + rows[:, None] * D + dims[None, :], acc)


def chained(rng):
    q, k, v = (_draw(rng, 192, 64, dtype=np.float16) for _ in range(3))
    chained_kernel[(1,)](q, k, v, _empty(128, 64), 192, D=64, BM=128, BN=32, num_warps=8, num_stages=2)


@triton.jit
def wide_kernel(a, b, out, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + k + ks[None, :])
        y = tl.load(b + (k + ks)[:, None] * N + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * N + columns[None, :], acc)


def two_warpgroups(rng):
    a, b = _draw(rng, 128, 160, dtype=np.float16), _draw(rng, 160, 64, dtype=np.float16)
    wide_kernel[(1,)](a, b, _empty(128, 64), 64, 160, BM=128, BN=64, BK=32, num_warps=8, num_stages=3)


def cluster(rng):
    a, b = _draw(rng, 256, 384, dtype=np.float16), _draw(rng, 384, 64, dtype=np.float16)
    wide_kernel[(1,)](a, b, _empty(256, 64), 64, 384, BM=256, BN=64, BK=64, num_warps=8, num_ctas=2)


@triton.jit
def scale_kernel(x_desc, out_desc, n, BLOCK: tl.constexpr):
    for k in range(n):
        tile = x_desc.load([k * BLOCK, 0])
        out_desc.store([k * BLOCK, 0], tile * 2.0)


def tma_stores(rng):
    x, out = _draw(rng, 96, 64), _empty(96, 64)
    scale_kernel[(1,)](
        TensorDescriptor.from_tensor(x, [32, 64]), TensorDescriptor.from_tensor(out, [32, 64]), 3, BLOCK=32
    )


SUBJECTS = {
    "scan": scan,
    "scan of rows": scan_rows,
    "reduce": reduce,
    "transpose": transpose,
    "loop sums": loop_sums,
    "old values": old_values,
    "specialized": specialized,
    "chained": chained,
    "two warpgroups": two_warpgroups,
    "cluster": cluster,
    "TMA stores": tma_stores,
}
