"""Layer norm, forward: rows of any length; stores the means and reciprocal deviations for a backward pass.

One program for each row goes over it three times: for the mean, for the variance around that mean, and to
write. Statistics are in float32 whatever the rows are in.

    python examples/layer_norm.py
"""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr,
    out_ptr,
    weight_ptr,
    bias_ptr,
    mean_ptr,
    rstd_ptr,
    row_stride,
    num_columns,
    eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    x_ptr += row * row_stride
    out_ptr += row * row_stride

    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, num_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + columns, mask=columns < num_columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / num_columns

    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, num_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < num_columns, other=0.0).to(tl.float32)
        centred = tl.where(columns < num_columns, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / num_columns + eps)

    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)

    for start in range(0, num_columns, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < num_columns
        x = tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + columns, mask=mask)
        bias = tl.load(bias_ptr + columns, mask=mask)
        tl.store(out_ptr + columns, (x - mean) * rstd * weight + bias, mask=mask)


def layer_norm(x, weight, bias, eps=1e-5, block=1024):
    """(out, mean, rstd) of every row of a contiguous matrix."""
    num_rows, num_columns = x.shape
    out = np.empty_like(x)
    mean = np.empty(num_rows, dtype=np.float32)
    rstd = np.empty(num_rows, dtype=np.float32)
    layer_norm_kernel[(num_rows,)](
        x, out, weight, bias, mean, rstd, x.strides[0] // x.itemsize, num_columns, eps, BLOCK=block
    )
    return out, mean, rstd


def reference(x, weight, bias, eps=1e-5):
    """The same in float64."""
    x = x.astype(np.float64)
    mean = x.mean(axis=1)
    rstd = 1 / np.sqrt(x.var(axis=1) + eps)
    return (x - mean[:, None]) * rstd[:, None] * weight + bias, mean, rstd


def main():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1151, 2311), dtype=np.float32) * 3 + 1
    weight, bias = rng.standard_normal((2, x.shape[1]), dtype=np.float32)
    for name, got, expected in zip(
        ("out", "mean", "rstd"), layer_norm(x, weight, bias), reference(x, weight, bias), strict=True
    ):
        error = np.abs(got - expected).max() / np.abs(expected).max()
        print(f"layer norm of {x.shape[0]} rows of {x.shape[1]} fp32, {name}: relative error {error:.1e}")
        assert error < 1e-5


if __name__ == "__main__":
    main()
