"""Timing on a GPU: events around every call, an emptied cache before it, and one wait at the end."""

import sys
from types import SimpleNamespace

import pytest
from backend.cuda.fake_driver import FakeDriver, Status

from deuteron import testing
from deuteron.backend.cuda.launch.libcuda import CudaDriver
from deuteron.testing import gpu_timer


class TimingDriver(FakeDriver):
    """Every event is a number; what lies between two is 0.5 ms."""

    def __init__(self):
        super().__init__()
        self.attributes["L2_CACHE_SIZE"] = 1000
        self.num_events = 0

    def _MemAlloc(self, size):
        return Status.CUDA_SUCCESS, "buffer"

    def _EventCreate(self, flags):
        self.num_events += 1
        return Status.CUDA_SUCCESS, self.num_events

    def _EventElapsedTime(self, begin, end):
        return Status.CUDA_SUCCESS, 0.5 * (end - begin)


@pytest.fixture
def api(monkeypatch):
    monkeypatch.delenv("DEUTERON_TARGET", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "cupy", None)
    api = TimingDriver()
    driver = CudaDriver(api)
    monkeypatch.setattr(gpu_timer, "cuda_driver", lambda: driver)
    monkeypatch.setattr(gpu_timer, "num_devices", lambda: 1)
    return api


def test_every_call_is_between_two_events_with_an_empty_cache(api):
    calls = []

    def launch():
        calls.append(len(api.calls))
        api.calls.append(("launch",))

    assert testing.do_bench(launch, warmup=2, rep=3, return_mode="all") == [0.5] * 6
    assert len(calls) == 1 + 5 + 4 + 6
    names = [name for name in api.names() if name not in ("cuEventCreate", "cuDeviceGet")]
    one = ["cuMemsetD8Async", "cuEventRecord", "launch", "cuEventRecord"]
    begin = names.index("cuMemsetD8Async")
    assert names[begin : begin + 21] == one * 5 + ["cuCtxSynchronize"]
    assert ("cuMemsetD8Async", "buffer", 0, 2000, 0) in api.calls


def test_what_timing_took_is_given_back(api):
    testing.do_bench(lambda: None, warmup=1, rep=1)
    assert api.names().count("cuEventDestroy") == api.names().count("cuEventCreate") == api.num_events
    assert api.names().count("cuMemFree") == 1


def test_quantiles_of_times_on_a_gpu(api):
    assert testing.do_bench(lambda: None, warmup=1, rep=1, quantiles=[0.5, 0.2]) == [0.5, 0.5]


def test_the_cpu_is_timed_by_the_clock(api, monkeypatch):
    monkeypatch.setenv("DEUTERON_TARGET", "cpu:native")
    testing.do_bench(lambda: None, warmup=1, rep=1)
    assert api.num_events == 0


def test_torch_times_where_it_uses_cuda(api, monkeypatch):
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 0),
        empty=lambda size, dtype, device: (size, dtype, device),
        int8="int8",
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    timer = gpu_timer.gpu_timer()
    assert isinstance(timer, gpu_timer.TorchTimer)
    assert timer._buffer == (2000, "int8", "cuda")
