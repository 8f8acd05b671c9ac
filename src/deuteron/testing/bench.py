"""How long a function takes: it is called for a while to warm up, then timed call by call.

    do_bench(f)                                  mean of the calls, in milliseconds
    do_bench(f, quantiles=[0.5, 0.2, 0.8])       [median, 20th, 80th percentile]
    do_bench(f, return_mode="min")

On the CPU a launch returns when the kernel has ended, so the clock is Python's, and caches stay warm between the calls.
Where there is a GPU, it takes the times, and its L2 cache is emptied before every call.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from deuteron.backend.cuda.launch.streams import torch_with_cuda
from deuteron.errors import UsageError
from deuteron.testing.gpu_timer import GpuTimer, gpu_timer
from deuteron.testing.graph_timer import time_in_graph
from deuteron.tracebacks import api_boundary

_SHORT_SECONDS = 0.01
_SUMMARIES: dict[str, Callable[[list[float]], Any]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "all": list,
}


@api_boundary
def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    percentiles: Sequence[float] | None = None,
    **older: Any,
) -> Any:
    """Milliseconds that a call of `fn` takes.

    Args:
        warmup, rep: milliseconds of calling before and while timing; at least one call each.
        grad_to_none: tensors, or one, whose `.grad` is set to None before each timed call.
        quantiles: if given, a list of these quantiles (of 0.5 alone: a number), and `return_mode` does not matter.
        return_mode: `mean`, `median`, `min`, `max` or `all` (the list of times).
        percentiles: what Triton 2.0 called `quantiles`.
        older: `fast_flush`, `record_clocks` and `device_type`, which Triton had once; ignored.
    """
    unknown = sorted(set(older) - {"fast_flush", "record_clocks", "device_type"})
    if unknown:
        raise TypeError(f"do_bench has no parameter '{unknown[0]}'")
    quantiles = quantiles or percentiles
    if return_mode not in _SUMMARIES:
        raise UsageError(f"return_mode must be one of {', '.join(_SUMMARIES)}, got '{return_mode}'")
    fn()
    tensors = _listed(grad_to_none)
    timer = gpu_timer()
    if timer is not None:
        return summarise(_time_on_gpu(timer, fn, warmup, rep, tensors), quantiles, return_mode)
    _call_for(fn, warmup, tensors)
    return summarise(_call_for(fn, rep, tensors), quantiles, return_mode)


@api_boundary
def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """As `do_bench`, of calls in a CUDA graph, where the program uses torch with CUDA: without what a launch costs in
    Python, and without emptying the cache between calls. A function that cannot be recorded is timed by `do_bench`,
    with a warning; so it is, without one, where there is no torch with CUDA.
    """
    torch = torch_with_cuda()
    if torch is not None:
        try:
            return summarise(time_in_graph(torch, fn, rep, _listed(grad_to_none)), quantiles, return_mode)
        except RuntimeError as error:
            warnings.warn(f"do_bench_cudagraph times without a graph: {error}", stacklevel=2)
    return do_bench(fn, 5, rep, grad_to_none, quantiles, return_mode)


def _listed(grad_to_none: Any) -> list[Any]:
    """The tensors of which there is None, one, or some."""
    if grad_to_none is None:
        return []
    return [grad_to_none] if hasattr(grad_to_none, "grad") else list(grad_to_none)


def shortest(fn: Callable[[], Any], enough: float) -> float:
    """Milliseconds of the shortest of some calls: a first look at what may take long, after one that is not timed.

    It ends with the first call that takes at most `enough`; on the CPU after 10 ms else, as the first calls of a
    kernel, whose threads are still asleep, were seen to take 20 times as long as later ones.
    """
    fn()
    timer = gpu_timer()
    if timer is not None:
        return min(_queue(timer, fn, 3, []))
    found, end = _timed(fn), time.perf_counter() + _SHORT_SECONDS
    while found > enough and time.perf_counter() < end:
        found = min(found, _timed(fn))
    return found


def _timed(fn: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    fn()
    return (time.perf_counter() - begin) * 1e3


def _time_on_gpu(timer: GpuTimer, fn: Callable[[], Any], warmup: float, rep: float, tensors: list[Any]) -> list[float]:
    """The calls are queued one after the other: emptying the cache hides what a launch costs in Python."""
    estimate = max(statistics.fmean(_queue(timer, fn, 5, tensors)), 1e-3)
    _queue(timer, fn, max(1, int(warmup / estimate)), tensors)
    return _queue(timer, fn, max(1, int(rep / estimate)), tensors)


def _queue(timer: GpuTimer, fn: Callable[[], Any], count: int, tensors: list[Any]) -> list[float]:
    events = []
    for _ in range(count):
        for tensor in tensors:
            tensor.grad = None
        timer.empty_cache()
        begin = timer.record()
        fn()
        events.append((begin, timer.record()))
    timer.synchronize()
    return [timer.elapsed(begin, end) for begin, end in events]


def _call_for(fn: Callable[[], Any], milliseconds: float, tensors: list[Any]) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + milliseconds / 1e3
    while not times or time.perf_counter() < end:
        for tensor in tensors:
            tensor.grad = None
        times.append(_timed(fn))
    return times


def summarise(times: list[float], quantiles: Sequence[float] | None, return_mode: str = "mean") -> Any:
    """The quantiles of some times, or, without quantiles, what `return_mode` says."""
    if quantiles is None:
        return _SUMMARIES[return_mode](times)
    ordered = sorted(times)
    found = [_quantile(ordered, q) for q in quantiles]
    return found[0] if len(found) == 1 else found


def _quantile(ordered: list[float], q: float) -> float:
    """Linear interpolation between the two nearest ranks."""
    if not 0 <= q <= 1:
        raise UsageError(f"quantiles go from 0 to 1, got {q}")
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
