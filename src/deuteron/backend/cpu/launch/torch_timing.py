"""Tells torch how to time kernels on the CPU, while torch.compile chooses among the configurations of each.

    offer_to_torch()             once torch's Inductor is loaded: `register_benchmarker("cpu", ...)`
    fastest_of(call, 100)        milliseconds of a call

Inductor asks a registry for what times a device. Its own way on a CPU is to call a kernel for 25 ms and then for
100 ms more, and to take the median: 0.125 s for each of up to six configurations, most of a first call. Here the time
is that of the fastest call, which is known once three calls have come near it: other work on the machine only ever
makes a call slower. Nothing else differs: what is called, and on which data, is torch's.

Another registration than torch's own stays as it is, and so does torch's way where its backend for the CPU is not
Triton's (`torch._inductor.config.cpu_backend`), so that no choice between other kernels is made differently.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from math import inf
from typing import Any

_BENCHMARKS = "torch._inductor.runtime.benchmarking"
# How near, how many calls, and for how long at least: longer than the 3 to 4 ms that a scheduler gives another process.
_NEAR, _SAME_CALLS, _LEAST_MS = 1.05, 3, 6.0


def offer_to_torch() -> None:
    """Register `fastest_of` where Inductor is loaded and times CPUs its own way."""
    benchmarks = sys.modules.get(_BENCHMARKS)
    register = getattr(benchmarks, "register_benchmarker", None)
    own = getattr(benchmarks, "_default_cpu_bench", None)
    registered = getattr(benchmarks, "_BENCHMARK_DISPATCH", {})
    if register and own and registered.get("cpu") is own:
        register("cpu", _benchmark, override=True)


def _benchmark(benchmarker: Any, call: Callable[[], Any], *, warmup: float, rep: float, **others: Any) -> float:
    """What the registry calls: milliseconds of a call."""
    config = sys.modules["torch._inductor.config"]
    if others or config.cpu_backend != "triton":
        return benchmarker.benchmark_cpu(call, warmup=warmup, rep=rep, **others)
    return fastest_of(call, rep)


def fastest_of(call: Callable[[], Any], rep: float) -> float:
    """Milliseconds of the fastest of some calls after a first one: `rep` milliseconds of them at most."""
    _milliseconds_of(call)
    spent, fastest = 0.0, [inf]
    while spent < rep and (spent < _LEAST_MS or fastest[-1] > _NEAR * fastest[0]):
        took = _milliseconds_of(call)
        spent += took
        fastest = sorted([*fastest, took])[:_SAME_CALLS]
    return fastest[0]


def _milliseconds_of(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)
