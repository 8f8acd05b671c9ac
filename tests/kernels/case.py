"""A kernel as a project would write it, what it is launched with, and what it has to give.

    @case
    def swiglu_forward(rng):
        a, b = normal(rng, (5, 300), "float16"), ...
        out = poisoned((5, 300), "float16")
        launch = Launch(swiglu_kernel, (5,), (a, b, out, 300), {"BLOCK": 512})
        return Case([launch], [(out, silu(wide(a)) * wide(b), 2e-3)])

Every case runs on each executor (test_results.py), and its kernels are compiled for each architecture
(test_compile.py). What a case draws is small: the emulator runs it too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from deuteron.runtime.jit import JITFunction

Shape = int | tuple[int, ...]

POISON_BYTE = 0xA5
NARROW = {name: np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")}


@dataclass(frozen=True)
class Launch:
    """`args` by position; `options`: constexprs, num_warps and the like, by name."""

    kernel: JITFunction
    grid: tuple[int, ...]
    args: Sequence[Any]
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self) -> None:
        self.kernel[self.grid](*self.args, **self.options)


@dataclass(frozen=True)
class Case:
    """`steps`: launches, and what NumPy does between them, in order. `expected`: arrays that were stored, what they
    should hold in float64, and how far max |difference| / max |expected| may be; 0: exactly that."""

    steps: Sequence[Launch | Callable[[], None]]
    expected: Sequence[tuple[np.ndarray, np.ndarray, float]]

    @property
    def launches(self) -> list[Launch]:
        return [step for step in self.steps if isinstance(step, Launch)]


CASES: dict[str, Callable[[np.random.Generator], Case]] = {}


def case(make: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
    """Enter a case under the name of the function that draws it."""
    assert make.__name__ not in CASES, make.__name__
    CASES[make.__name__] = make
    return make


def dtype_of(name: str) -> np.dtype:
    return NARROW.get(name) or np.dtype(name)


def normal(rng: np.random.Generator, shape: Shape, dtype: str = "float32", scale: float = 1) -> np.ndarray:
    return (scale * rng.standard_normal(shape)).astype(dtype_of(dtype))


def poisoned(shape: Shape, dtype: str = "float32") -> np.ndarray:
    """Not a number in every float, an odd pattern in every integer."""
    array = np.empty(shape, dtype_of(dtype))
    if array.dtype.kind in "iub":
        array.view(np.uint8).fill(POISON_BYTE)
    else:
        array.fill(np.nan)
    return array


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)
