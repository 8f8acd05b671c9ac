"""Matrix product in fp16, programs in groups, so that neighbours in time share rows of A and columns of B.

The grid is one-dimensional. Programs walk down GROUP_M tiles of a column before they step to the next
column:

    GROUP_M = 2, 4 x 3 tiles       0  2  4
                                   1  3  5
                                   6  8 10
                                   7  9 11

    python examples/matmul_grouped.py
"""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def grouped_tile(pid, num_m, num_n, GROUP_M: tl.constexpr):
    """The (row, column) of the tile that the program computes."""
    group = pid // (GROUP_M * num_n)
    first_m = group * GROUP_M
    group_rows = min(num_m - first_m, GROUP_M)
    within = pid % (GROUP_M * num_n)
    return first_m + within % group_rows, within // group_rows


@triton.jit
def matmul_grouped_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    tile_m, tile_n = grouped_tile(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (rows[:, None] * stride_am + ks[None, :] * stride_ak)
    b_ptrs = b_ptr + (ks[:, None] * stride_bk + columns[None, :] * stride_bn)

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - step * BLOCK_K
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (ks[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(ks[:, None] < left) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c = acc.to(tl.float16)

    c_ptrs = c_ptr + stride_cm * rows[:, None] + stride_cn * columns[None, :]
    tl.store(c_ptrs, c, mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul_grouped(a, b, block_m=64, block_n=64, block_k=32, group_m=4):
    """a @ b in fp16, for matrices of any strides."""
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), dtype=np.float16)
    strides = [stride // array.itemsize for array in (a, b, c) for stride in array.strides]

    def grid(meta):
        return (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)

    matmul_grouped_kernel[grid](
        a, b, c, M, N, K, *strides, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group_m
    )
    return c


def main():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((389, 275)).astype(np.float16)
    b = rng.standard_normal((275, 301)).astype(np.float16)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    error = np.abs(matmul_grouped(a, b) - expected).max() / np.abs(expected).max()
    print(f"grouped matmul {a.shape} x {b.shape} fp16: relative error {error:.1e} against float64")
    assert error < 1e-3


if __name__ == "__main__":
    main()
