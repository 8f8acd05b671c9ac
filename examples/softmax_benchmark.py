"""A benchmark with `perf_report`: softmax of Deuteron and of NumPy over the length of the rows.

Prints a table; with a folder as its argument it writes a CSV file and a plot there too (`pip install
deuteron[plot]`).

    python examples/softmax_benchmark.py
    python examples/softmax_benchmark.py results/
"""

import sys

import numpy as np

import deuteron as triton
import deuteron.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, num_columns, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * num_columns + columns
    x = tl.load(x_ptr + offsets, mask=columns < num_columns, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offsets, numerator / tl.sum(numerator, axis=0), mask=columns < num_columns)


def softmax_numpy(x):
    numerator = np.exp(x - x.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["num_columns"],
        x_vals=[128 * factor for factor in (1, 3, 8, 20)],
        line_arg="provider",
        line_vals=["deuteron", "numpy"],
        line_names=["Deuteron", "NumPy"],
        styles=[("blue", "-"), ("green", "--")],
        ylabel="GB/s",
        plot_name="softmax",
        args={"num_rows": 512},
    )
)
def benchmark(num_rows, num_columns, provider):
    x = np.random.default_rng(0).standard_normal((num_rows, num_columns), dtype=np.float32)
    out = np.empty_like(x)

    def run():
        if provider == "numpy":
            softmax_numpy(x)
        else:
            softmax_kernel[(num_rows,)](x, out, num_columns, BLOCK=triton.next_power_of_2(num_columns))

    milliseconds, fastest, slowest = triton.testing.do_bench(run, warmup=5, rep=20, quantiles=[0.5, 0.2, 0.8])

    def rate(ms):
        return 2 * x.nbytes / ms * 1e-6

    return rate(milliseconds), rate(slowest), rate(fastest)


def main():
    save_path = sys.argv[1] if len(sys.argv) > 1 else ""
    benchmark.run(print_data=True, save_path=save_path)


if __name__ == "__main__":
    main()
