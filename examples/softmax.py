"""Row softmax: one program for each row, the whole row in one tile.

The tile is the next power of two of the row's length. What lies beyond the row is loaded as minus infinity,
which neither changes the maximum nor adds to the sum.

    python examples/softmax.py
"""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, num_columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < num_columns
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    out = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + columns, out, mask=mask)


def softmax(x):
    """The softmax of every row of a matrix with contiguous rows."""
    num_rows, num_columns = x.shape
    out = np.empty_like(x)
    x_stride, out_stride = x.strides[0] // x.itemsize, out.strides[0] // out.itemsize
    block = triton.next_power_of_2(num_columns)
    softmax_kernel[(num_rows,)](x, out, x_stride, out_stride, num_columns, BLOCK=block)
    return out


def reference(x):
    """The same in float64."""
    numerator = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


def main():
    x = np.random.default_rng(0).standard_normal((1823, 781), dtype=np.float32)
    expected = reference(x)
    error = np.abs(softmax(x) - expected).max() / expected.max()
    print(f"softmax of {x.shape[0]} rows of {x.shape[1]} fp32: relative error {error:.1e} against float64")
    assert error < 1e-5


if __name__ == "__main__":
    main()
