"""Vector addition: the smallest kernel with a mask.

Each program adds one block of elements; the mask keeps the last program inside the vectors.

    python examples/vector_add.py
"""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y, block=1024):
    """x + y, for two contiguous vectors of one shape and type."""
    out = np.empty_like(x)
    grid = (triton.cdiv(x.size, block),)
    add_kernel[grid](x, y, out, x.size, BLOCK=block)
    return out


def main():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 98_765), dtype=np.float32)
    expected = x.astype(np.float64) + y
    error = np.abs(add(x, y) - expected).max() / np.abs(expected).max()
    print(f"vector add of {x.size} fp32: relative error {error:.1e} against float64")
    assert error < 1e-5


if __name__ == "__main__":
    main()
