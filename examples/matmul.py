"""Matrix product: a two-dimensional grid, one tile of the output for each program, masks on every edge.

python examples/matmul.py
"""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def matmul_kernel(
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
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + columns[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (start + ks[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(start + ks[:, None] < K) & (columns[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
    tl.store(c_ptrs, acc, mask=(rows[:, None] < M) & (columns[None, :] < N))


def matmul(a, b, block_m=64, block_n=64, block_k=64):
    """a @ b, for matrices of any strides."""
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), dtype=a.dtype)
    strides = [stride // array.itemsize for array in (a, b, c) for stride in array.strides]
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n))
    matmul_kernel[grid](a, b, c, M, N, K, *strides, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k)
    return c


def main():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((347, 291), dtype=np.float32)
    b = rng.standard_normal((291, 413), dtype=np.float32)
    expected = a.astype(np.float64) @ b
    error = np.abs(matmul(a, b) - expected).max() / np.abs(expected).max()
    print(f"matmul {a.shape} x {b.shape} fp32: relative error {error:.1e} against float64")
    assert error < 1e-5


if __name__ == "__main__":
    main()
