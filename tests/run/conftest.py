"""Numeric tests: every test in this folder runs on each executor; in `make test` on one GPU of two, where these do not
differ in what it is about.

    def test_add(draw, poisoned, check):
        x, out = draw("float32", 1000), poisoned("float32", 1000)
        kernel[(4,)](x, out, 1000, BLOCK=256)
        check(out, x.astype(np.float64) + 1)

Outputs are poisoned first: an element that a kernel does not write cannot be right by chance.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import ml_dtypes
import numpy as np
import pytest

import deuteron.compat  # noqa: F401  (some examples say `import triton`)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GPUS = ("cuda:80", "cuda:90")
INTERPRETER = pytest.param("interpreter", marks=pytest.mark.always)
EXECUTORS = (INTERPRETER, "cpu", *(pytest.param(gpu, marks=pytest.mark.lot(n, 2)) for n, gpu in enumerate(GPUS)))
POISON_BYTE = 0xA5
TF32_TOLERANCE = 2e-3

# The distance from 1 to the next number.
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


@pytest.fixture(params=EXECUTORS, autouse=True)
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Launches run on the executor of this name; those for a GPU on the emulator."""
    is_gpu = request.param.startswith("cuda")
    monkeypatch.setenv("DEUTERON_INTERPRET", "1" if request.param == "interpreter" else "0")
    monkeypatch.setenv("DEUTERON_EMULATE", "1" if is_gpu else "0")
    monkeypatch.setenv("DEUTERON_TARGET", request.param if is_gpu else "cpu")
    return request.param


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.fixture
def draw(rng: np.random.Generator) -> Callable[..., np.ndarray]:
    """draw(dtype, shape, low, high): integers of the whole type, floats from a normal distribution, or from a range."""

    def draw(name: str, shape: int | tuple[int, ...], low: float | None = None, high: float | None = None):
        dtype = numpy_dtype(name)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            low, high = limits.min if low is None else low, limits.max if high is None else high
            return rng.integers(low, high, shape, dtype, endpoint=True)
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        return (rng.standard_normal(shape) if low is None else rng.uniform(low, high, shape)).astype(dtype)

    return draw


def poisoned_array(name: str, shape: int | tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, numpy_dtype(name))
    if array.dtype.kind in "iub":
        array.view(np.uint8).fill(POISON_BYTE)
    else:
        array.fill(np.nan)
    return array


@pytest.fixture
def poisoned() -> Callable[..., np.ndarray]:
    """poisoned(dtype, shape): not a number in every float, an odd pattern in every integer."""
    return poisoned_array


class PoisonedNumPy:
    """NumPy, but `empty` and `empty_like` poison what they make."""

    def __getattr__(self, name: str) -> object:
        return getattr(np, name)

    def empty(self, shape: int | tuple[int, ...], dtype: object = float) -> np.ndarray:
        return poisoned_array(np.dtype(dtype).name, shape)

    def empty_like(self, array: np.ndarray) -> np.ndarray:
        return poisoned_array(array.dtype.name, array.shape)


@pytest.fixture
def check() -> Callable[..., None]:
    """check(got, expected, ulps=2): integers are equal, floats within some units in the last place, each element."""

    def check(got: np.ndarray, expected: np.ndarray, ulps: float = 2) -> None:
        if got.dtype.kind in "iub":
            np.testing.assert_array_equal(got, expected)
            return
        tolerance = ulps * EPSILON[got.dtype.name]
        np.testing.assert_allclose(got.astype(np.float64), expected, rtol=tolerance, atol=0)

    return check


@pytest.fixture
def check_norm(executor: str) -> Callable[..., None]:
    """check_norm(got, expected, tolerance): max |got - expected| / max |expected|, for sums that cancel.

    `tf32` says that it is a product of fp32 matrices in the default precision, which a GPU rounds to ten bits.
    """

    def check_norm(got: np.ndarray, expected: np.ndarray, tolerance: float, tf32: bool = False) -> None:
        assert got.shape == expected.shape
        if tf32 and executor.startswith("cuda"):
            tolerance = TF32_TOLERANCE
        error = np.abs(got.astype(np.float64) - expected).max() / np.abs(expected).max()
        assert error <= tolerance, f"relative error {error:.2e}, allowed {tolerance:.0e}"

    return check_norm


@pytest.fixture
def example() -> Callable[[str], ModuleType]:
    """example("softmax") is examples/softmax.py; the outputs that it makes are poisoned."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"examples_{name}", EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.np = PoisonedNumPy()
        return module

    return load
