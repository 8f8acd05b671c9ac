"""Timing in a CUDA graph, with a torch that notes what it is asked for: no GPU has run this."""

from contextlib import contextmanager

import pytest

from deuteron.testing import bench, do_bench_cudagraph


class FakeTorch:
    """A call takes 2 ms; a replayed graph as long as what was recorded."""

    def __init__(self, refuses=False):
        self.cuda, self.refuses = self, refuses
        self.log, self.now, self.recorded, self.is_recording = [], 0.0, 0, False

    def call(self):
        if self.is_recording:
            self.recorded += 1
        else:
            self.now += 2.0

    def Stream(self):
        return "stream of the current GPU"

    @contextmanager
    def stream(self, stream):
        self.log.append(stream)
        yield
        self.log.append("default")

    def CUDAGraph(self):
        return self

    @contextmanager
    def graph(self, graph, stream="stream of the GPU that recorded first"):
        self.log.append(stream)
        if self.refuses:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.is_recording = True
        yield
        self.is_recording = False

    def replay(self):
        self.now += 1.5 * self.recorded

    def synchronize(self):
        self.log.append("synchronize")

    def Event(self, enable_timing):
        return Event(self)


class Event:
    def __init__(self, torch):
        self.torch, self.when = torch, None

    def record(self):
        self.when = self.torch.now

    def elapsed_time(self, end):
        return end.when - self.when


def test_calls_are_recorded_and_replayed(monkeypatch):
    torch = FakeTorch()
    monkeypatch.setattr(bench, "torch_with_cuda", lambda: torch)
    assert do_bench_cudagraph(torch.call, rep=20, quantiles=[0.5, 0.2]) == [1.5, 1.5]
    assert torch.recorded == 10 and torch.log[0] == "stream of the current GPU" and torch.log[-1] == "default"
    assert "stream of the GPU that recorded first" not in torch.log


def test_gradients_are_dropped_before_each_recorded_call(monkeypatch):
    torch, seen = FakeTorch(), []

    class Tensor:
        grad = 1

    tensor = Tensor()

    def call():
        seen.append(tensor.grad)
        tensor.grad = 1
        torch.call()

    monkeypatch.setattr(bench, "torch_with_cuda", lambda: torch)
    assert do_bench_cudagraph(call, rep=4, grad_to_none=[tensor], return_mode="max") == 1.5
    assert seen == [1] + [None] * 7


def test_what_cannot_be_recorded_is_timed_without_a_graph(monkeypatch):
    torch = FakeTorch(refuses=True)
    monkeypatch.setattr(bench, "torch_with_cuda", lambda: torch)
    with pytest.warns(UserWarning, match="times without a graph: operation not permitted"):
        assert do_bench_cudagraph(torch.call, rep=1) > 0


def test_without_torch_it_is_do_bench(monkeypatch):
    monkeypatch.setattr(bench, "torch_with_cuda", lambda: None)
    monkeypatch.setattr(bench, "do_bench", lambda fn, *given: given)
    assert do_bench_cudagraph(len, rep=7, return_mode="min") == (5, 7, None, None, "min")
