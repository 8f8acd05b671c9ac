"""Timing, tables and comparison for tests and benchmarks.

ms = testing.do_bench(lambda: add[grid](x, y, out, n, BLOCK=1024))

@testing.perf_report(testing.Benchmark(x_names=["n"], x_vals=[2**i for i in range(12, 20)], line_arg="provider",
                     line_vals=["deuteron", "numpy"], line_names=["Deuteron", "NumPy"], plot_name="add", args={}))
def benchmark(n, provider): ...
benchmark.run(print_data=True, save_path="results")

bench.py    do_bench      report.py    Benchmark, perf_report      compare.py    assert_close
hardware.py  get_dram_gbps, get_max_tensorcore_tflops: what a GPU can do at most
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deuteron.lazy import lazy_names

if TYPE_CHECKING:
    from deuteron.testing.bench import do_bench as do_bench
    from deuteron.testing.bench import do_bench_cudagraph as do_bench_cudagraph
    from deuteron.testing.compare import allclose as allclose
    from deuteron.testing.compare import assert_almost_equal as assert_almost_equal
    from deuteron.testing.compare import assert_close as assert_close
    from deuteron.testing.graph_timer import cuda_graph_without_gc as cuda_graph_without_gc
    from deuteron.testing.hardware import get_dram_gbps as get_dram_gbps
    from deuteron.testing.hardware import get_max_simd_tflops as get_max_simd_tflops
    from deuteron.testing.hardware import get_max_tensorcore_tflops as get_max_tensorcore_tflops
    from deuteron.testing.hardware import nvsmi as nvsmi
    from deuteron.testing.hardware import set_gpu_clock as set_gpu_clock
    from deuteron.testing.report import Benchmark as Benchmark
    from deuteron.testing.report import Mark as Mark
    from deuteron.testing.report import perf_report as perf_report

_NAMES = {
    "deuteron.testing.bench": "do_bench do_bench_cudagraph",
    "deuteron.testing.compare": "allclose assert_almost_equal assert_close",
    "deuteron.testing.graph_timer": "cuda_graph_without_gc",
    "deuteron.testing.hardware": "get_dram_gbps get_max_simd_tflops get_max_tensorcore_tflops nvsmi set_gpu_clock",
    "deuteron.testing.report": "Benchmark Mark perf_report",
}

__getattr__, __dir__ = lazy_names(globals(), _NAMES, "bench compare graph_timer hardware report")
