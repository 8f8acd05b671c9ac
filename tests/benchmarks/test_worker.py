"""The GPU benchmark goes on after a configuration that faults, ends its process or says nothing; needs torch."""

import os
import time
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


class StubTimer:
    def copy_rate(self):
        return 4000.0


def stub_measure(case, configs, peers, timer, failures, effort, tell):
    """A case's name says what becomes of it; a configuration that is known to fail is left out."""
    from benchmarks.gpu.measure import Row

    if case.name == "no input":
        raise RuntimeError("no memory")
    left = [label for label in configs if ("ours", case.name, label) not in failures]
    for label in left:
        tell("ours", label)
        if label == "faults":
            raise RuntimeError("illegal address")
        if label == "ends":
            os._exit(9)
        if label == "hangs":
            time.sleep(60)
    return Row({}, vendor=" ".join(left))


def test_the_run_goes_on(monkeypatch):
    from benchmarks.gpu import worker

    monkeypatch.setattr(worker, "Timer", StubTimer)
    monkeypatch.setattr(worker, "measure", stub_measure)
    monkeypatch.setattr(worker, "SILENCE_SECONDS", 2.0)
    selected = [
        (SimpleNamespace(name="first"), ("good",)),
        (SimpleNamespace(name="second"), ("faults", "good", "ends", "better")),
        (SimpleNamespace(name="no input"), ("good",)),
        (SimpleNamespace(name="third"), ("hangs", "good")),
    ]
    bench = worker.Bench(selected, ("ours",), {}, None)
    rows = [(case.name, row.vendor, row.failure) for case, row in bench.rows()]
    assert rows == [
        ("first", "good", ""),
        ("second", "good better", ""),
        ("no input", "-", "RuntimeError: no memory"),
        ("third", "good", ""),
    ]
    assert bench.failures == {
        ("ours", "second", "faults"): "RuntimeError: illegal address",
        ("ours", "second", "ends"): "its process ended",
        ("ours", "third", "hangs"): "no answer in 2 s",
    }
    assert bench.copy_rate == 4000.0
