"""How torch is told to time kernels on the CPU; with modules in the place of torch's."""

from __future__ import annotations

import sys
import time
from types import ModuleType, SimpleNamespace

import pytest

from deuteron.backend.cpu.launch.torch_timing import fastest_of, offer_to_torch


class Benchmarker:
    def benchmark_cpu(self, call, warmup, rep):
        return f"torch's, {warmup} and {rep} ms"


@pytest.fixture
def benchmarks(monkeypatch):
    """Inductor's registry, with its own way for CPUs."""
    module, registered = ModuleType("benchmarking"), {}
    module._default_cpu_bench = lambda self, call, warmup, rep: self.benchmark_cpu(call, warmup, rep)
    module._BENCHMARK_DISPATCH = registered
    module.register_benchmarker = lambda device, function, override: registered.update({device: function})
    registered["cpu"] = module._default_cpu_bench
    monkeypatch.setitem(sys.modules, "torch._inductor.runtime.benchmarking", module)
    monkeypatch.setitem(sys.modules, "torch._inductor.config", SimpleNamespace(cpu_backend="triton"))
    return registered


def _time(benchmarks, call=lambda: time.sleep(0.001)):
    return benchmarks["cpu"](Benchmarker(), call, warmup=25, rep=100)


def test_torch_times_by_the_fastest_call(benchmarks):
    offer_to_torch()
    assert 1.0 <= _time(benchmarks) < 50


def test_another_backend_is_timed_as_torch_does(benchmarks, monkeypatch):
    offer_to_torch()
    monkeypatch.setattr(sys.modules["torch._inductor.config"], "cpu_backend", "cpp")
    assert _time(benchmarks) == "torch's, 25 and 100 ms"


def test_another_registration_stays(benchmarks):
    benchmarks["cpu"] = other = lambda *args, **kwargs: 1.0
    offer_to_torch()
    assert benchmarks["cpu"] is other


@pytest.mark.parametrize("module", [None, ModuleType("benchmarking")], ids=["not loaded", "without a registry"])
def test_torch_without_a_registry_is_left_alone(monkeypatch, module):
    monkeypatch.setitem(sys.modules, "torch._inductor.runtime.benchmarking", module)
    offer_to_torch()


def _calls(monkeypatch, milliseconds):
    """Of calls that take so long: what is measured, and how many there are."""
    clock, durations, count = [0.0], iter(milliseconds), [0]

    def call():
        clock[0] += next(durations) * 1e-3
        count[0] += 1

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    return fastest_of(call, 100), count[0]


def test_calls_that_are_alike_end_it(monkeypatch):
    took, count = _calls(monkeypatch, [50, *[1] * 99])
    assert took == pytest.approx(1)
    assert count in (7, 8)


def test_one_fast_call_is_waited_for_to_come_again(monkeypatch):
    took, count = _calls(monkeypatch, [1, 1, *[2, 3, 4, 5, 6] * 2, 1, 1, *[1] * 99])
    assert took == pytest.approx(1)
    assert count == 14


def test_calls_that_are_never_alike_end_with_the_time(monkeypatch):
    took, count = _calls(monkeypatch, [0, *range(9, 0, -1), *[70] * 9])
    assert took == pytest.approx(1)
    assert count == 11


def test_a_call_that_takes_longer_than_the_time_is_measured_once(monkeypatch):
    assert _calls(monkeypatch, [300] * 9) == (pytest.approx(300), 2)
