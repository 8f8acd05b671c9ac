"""What a launch on the emulator needs, and does not."""

import numpy as np
import pytest

import deuteron
import deuteron.language as tl


@deuteron.jit
def doubled(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, tl.load(x + i) * 2)


def test_no_ptxas_is_started(monkeypatch: pytest.MonkeyPatch):
    def start(*_):
        raise AssertionError("nobody assembles for the emulator")

    monkeypatch.setattr("deuteron.backend.cuda.backend.start_assembler", start)
    for name, value in (("EMULATE", "1"), ("ALWAYS_COMPILE", "1"), ("INTERPRET", "0"), ("TARGET", "cuda:90")):
        monkeypatch.setenv(f"DEUTERON_{name}", value)
    x = np.arange(32, dtype=np.float32)
    doubled[(1,)](x, N=32)
    np.testing.assert_array_equal(x, np.arange(0, 64, 2))
