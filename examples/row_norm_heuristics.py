"""Rows scaled to length one: `@triton.heuristics` computes constexprs from the arguments of a call.

BLOCK is the next power of two of the row's length; EVEN says that no mask is needed, so that a kernel of
its own is compiled for such rows.

    python examples/row_norm_heuristics.py
"""

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: triton.next_power_of_2(args["num_columns"]),
        "EVEN": lambda args: args["num_columns"] == triton.next_power_of_2(args["num_columns"]),
    }
)
@triton.jit
def row_norm_kernel(x_ptr, out_ptr, num_columns, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * num_columns + columns
    if EVEN:
        x = tl.load(x_ptr + offsets)
    else:
        x = tl.load(x_ptr + offsets, mask=columns < num_columns, other=0.0)
    out = x * tl.rsqrt(tl.sum(x * x, axis=0))
    if EVEN:
        tl.store(out_ptr + offsets, out)
    else:
        tl.store(out_ptr + offsets, out, mask=columns < num_columns)


def row_norm(x):
    """x / |x| for every row of a contiguous matrix."""
    out = np.empty_like(x)
    row_norm_kernel[(x.shape[0],)](x, out, x.shape[1])
    return out


def main():
    for num_columns in (512, 301):
        x = np.random.default_rng(0).standard_normal((97, num_columns), dtype=np.float32)
        expected = x / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
        error = np.abs(row_norm(x) - expected).max() / np.abs(expected).max()
        print(f"{x.shape[0]} rows of {num_columns} fp32 to length one: relative error {error:.1e}")
        assert error < 1e-5


if __name__ == "__main__":
    main()
