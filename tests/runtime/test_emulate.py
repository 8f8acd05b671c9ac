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


@deuteron.jit
def product(x, y, out):
    at = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


def test_the_variable_of_the_precision_of_products_is_heard_by_every_launch(rng, monkeypatch: pytest.MonkeyPatch):
    for name, value in (("EMULATE", "1"), ("INTERPRET", "0"), ("TARGET", "cuda:90")):
        monkeypatch.setenv(f"DEUTERON_{name}", value)
    x, y = rng.standard_normal((2, 16, 16), np.float32)
    errors = []
    for precision in ("tf32", "ieee", "tf32x3", ""):
        monkeypatch.setenv("TRITON_F32_DEFAULT", precision)
        product[(1,)](x, y, out := np.zeros((16, 16), np.float32))
        errors.append(abs(out - x.astype(np.float64) @ y).max())
    assert errors[0] == errors[3] > 1e-4
    assert max(errors[1:3]) < 1e-5


class Held:
    """What says of itself where its elements are, and no more."""

    def __init__(self, array):
        self.array = array

    @property
    def __array_interface__(self):
        return self.array.__array_interface__


@deuteron.jit
def fill_kernel(x_ptr, value):
    tl.store(x_ptr + tl.arange(0, 4), value)


@pytest.mark.parametrize("value", [5.0, np.float32(5), np.int32(5)])
def test_an_array_by_its_interface_alone(value, monkeypatch: pytest.MonkeyPatch):
    """NumPy's numbers have that as well."""
    monkeypatch.setenv("DEUTERON_EMULATE", "1")
    monkeypatch.setenv("DEUTERON_TARGET", "cuda:90")
    x = np.zeros(4, np.float32)
    fill_kernel[(1,)](Held(x), value)
    assert (x == 5).all()


@pytest.mark.parametrize("target", ["", "cuda:80"])
def test_what_is_warmed_up_is_what_is_launched(target: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in (("EMULATE", "1"), ("INTERPRET", "0"), ("TARGET", target)):
        monkeypatch.setenv(f"DEUTERON_{name}", value)
    x = np.arange(32, dtype=np.float32)
    kernel = doubled.warmup(x, N=32, grid=(1,))
    assert str(kernel.metadata.target) == (target or "cuda:90") and "ld.global" in kernel.asm["ptx"]
    assert np.array_equal(x, np.arange(32))
    assert doubled[(1,)](x, N=32) is kernel
