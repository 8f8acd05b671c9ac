"""A matrix product that finds its tiles by timing: `@triton.autotune`, in a file that says `import triton`.

The configurations are timed once for every new (M, N, K), and the fastest is kept for later calls.

    deuteron run examples/matmul_autotuned.py
"""

import numpy as np
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 16, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=2),
        triton.Config({"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32}, num_warps=4),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}, num_warps=4, num_stages=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_autotuned_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * K + ks, mask=(rows[:, None] < M) & (ks < K), other=0.0)
        b = tl.load(b_ptr + ks[:, None] * N + columns, mask=(ks[:, None] < K) & (columns < N), other=0.0)
        acc = tl.dot(a, b, acc)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=mask)


def matmul(a, b):
    """a @ b, for contiguous fp32 matrices."""
    (M, K), N = a.shape, b.shape[1]
    c = np.empty((M, N), dtype=np.float32)
    matmul_autotuned_kernel[lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))](
        a, b, c, M, N, K
    )
    return c


def main():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((301, 155), dtype=np.float32)
    b = rng.standard_normal((155, 217), dtype=np.float32)
    expected = a.astype(np.float64) @ b
    error = np.abs(matmul(a, b) - expected).max() / np.abs(expected).max()
    print(f"matmul {a.shape} x {b.shape} fp32: relative error {error:.1e} against float64")
    print(f"fastest: {matmul_autotuned_kernel.best_config}")
    assert error < 1e-5


if __name__ == "__main__":
    main()
