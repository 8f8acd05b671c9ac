"""What a GPU can do at most."""

import os

import numpy as np
import pytest

from deuteron.errors import UsageError
from deuteron.testing import (
    allclose,
    get_dram_gbps,
    get_max_simd_tflops,
    get_max_tensorcore_tflops,
    hardware,
    set_gpu_clock,
)


class Driver:
    def capability(self, device):
        return 90

    def attribute(self, name, device):
        return {"MULTIPROCESSOR_COUNT": 132, "MEMORY_CLOCK_RATE": 3_201_000, "GLOBAL_MEMORY_BUS_WIDTH": 6144}[name]


def test_rates_of_an_h200(monkeypatch):
    monkeypatch.setattr(hardware, "num_devices", lambda: 1)
    monkeypatch.setattr(hardware, "cuda_driver", Driver)
    assert round(get_dram_gbps(0)) == 4917
    assert round(get_max_tensorcore_tflops(np.dtype("float16"), 1.83e6, 0)) == 989
    assert round(get_max_tensorcore_tflops(np.dtype("int8"), 1.83e6, 0)) == 1979
    assert round(get_max_simd_tflops(np.dtype("float32"), 1.83e6, 0)) == 62
    with pytest.raises(UsageError, match="no dots of int64"):
        get_max_tensorcore_tflops(np.dtype("int64"), 1.83e6, 0)


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(hardware, "num_devices", lambda: 0)
    with pytest.raises(UsageError, match="there is none"):
        get_dram_gbps()


def test_allclose_is_relative_to_the_greatest():
    assert allclose(np.array([100.0, 0.5]), np.array([100.5, 0.0])) and not allclose([1.0], [1.1])


def test_clocks_are_locked_and_unlocked(tmp_path, monkeypatch):
    """By `nvidia-smi`, for which a script stands that writes down what it is asked."""
    log, script = tmp_path / "log", tmp_path / "nvidia-smi"
    script.write_text(f'#!/bin/sh\necho "$3 $4" >> "{log}"\n[ "${{3#--query}}" = "$3" ] || echo 1350, 1215\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with set_gpu_clock() as (tflops, gbps):
        assert (round(tflops), round(gbps)) == (299, 1555)
    with pytest.raises(UsageError, match=r"clocks are \[1350, 1215\] MHz, not \[999, 1215\]"), set_gpu_clock(999):
        pass
    asked = [line.split()[0] for line in log.read_text().splitlines()]
    assert asked[:3] == ["-pm", "--lock-gpu-clocks=1350,1350", "--lock-memory-clocks=1215,1215"]
    assert asked[-3:] == ["-pm", "-rgc", "-rmc"]
