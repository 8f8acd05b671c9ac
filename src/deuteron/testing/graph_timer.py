"""Times of what is in a CUDA graph: launches that are recorded once and started together, without their cost in Python.

    times = time_in_graph(torch, fn, rep=20, tensors=[])        milliseconds of a call, for each of ten graph launches

Torch records them, on a stream of their own, which is the current one meanwhile: the stream that torch keeps for
recording is on the GPU that was current when it first did. Data that one call leaves in the L2 cache the next one
finds there.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_ESTIMATED_CALLS = 5
_GRAPH_LAUNCHES = 10


def time_in_graph(torch: Any, fn: Callable[[], Any], rep: float, tensors: Iterable[Any]) -> list[float]:
    """Each is a mean of as many calls as take `rep` milliseconds. Raises what torch does where `fn` is not recorded."""
    tensors, stream = list(tensors), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        fn()
        estimate = _elapsed(torch, lambda: _calls(fn, _ESTIMATED_CALLS, tensors)) / _ESTIMATED_CALLS
        count = max(1, int(rep / max(estimate, 1e-3)))
        graph = torch.cuda.CUDAGraph()
        with _without_gc(), torch.cuda.graph(graph, stream=stream):
            _calls(fn, count, tensors)
        torch.cuda.synchronize()
        return [_elapsed(torch, graph.replay) / count for _ in range(_GRAPH_LAUNCHES)]


@contextmanager
def cuda_graph_without_gc(*args: Any, **kwargs: Any) -> Iterator[Any]:
    """`torch.cuda.graph(...)` with Python's garbage collector off."""
    import torch  # deferred: only who has it records graphs

    with _without_gc(), torch.cuda.graph(*args, **kwargs) as graph:
        yield graph


@contextmanager
def _without_gc() -> Iterator[None]:
    """What it frees may call the driver, which must not be called while a graph is recorded."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _calls(fn: Callable[[], Any], count: int, tensors: list[Any]) -> None:
    for _ in range(count):
        for tensor in tensors:
            tensor.grad = None
        fn()


def _elapsed(torch: Any, work: Callable[[], Any]) -> float:
    """Milliseconds between events before and after the work."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)
