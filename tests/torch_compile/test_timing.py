"""torch chooses among the configurations of a kernel by Deuteron's timing, among those of other backends by its own."""

from __future__ import annotations

import pytest

import deuteron.compat  # noqa: F401  (makes `import triton` work in this process)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def timed(backend, count):
    """How often torch timed a call, and how often its own way, while a program was compiled and `count` calls timed."""
    from torch._dynamo.utils import counters
    from torch._inductor import config
    from torch._inductor.runtime.benchmarking import benchmarker

    counters.clear()
    with config.patch(cpu_backend="triton", compile_threads=1, force_disable_caches=True):
        x = torch.randn(40, 50)
        torch.testing.assert_close(torch.compile(lambda x: x + x.t().contiguous().t())(x), x + x)
    with config.patch(cpu_backend=backend):
        for _ in range(count):
            assert benchmarker.benchmark(lambda: None, device="cpu") > 0
    counts = counters["inductor"].items()
    return [
        sum(count for name, count in counts if name.endswith(ending)) for ending in (".benchmark", ".benchmark_cpu")
    ]


def test_configurations_are_timed_by_deuteron():
    timings, own = timed("triton", 1)
    assert timings > 1
    assert own == 0


def test_other_backends_are_timed_by_torch():
    assert timed("cpp", 2)[1] == 2
