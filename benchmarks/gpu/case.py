"""What is measured: a kernel of `kernels.py`, its arguments, the configurations to try, and what to compare with.

    Case("softmax", "softmax 16384x4096", "softmax", ("*fp32", "*fp32", 4096, 4096, 4096), configs, ...)

A case says only what a compile needs; `make` draws the inputs, on the GPU, when the case is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

TOLERANCE = {"fp32": 1e-5, "fp16": 1e-3, "bf16": 5e-3}
TORCH_NAMES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


@dataclass(frozen=True)
class Config:
    """Constexprs and options of a launch. `label` is short: `128x256x64 w8 s3`."""

    constants: tuple[tuple[str, Any], ...]
    num_warps: int
    num_stages: int
    label: str

    def keywords(self) -> dict[str, Any]:
        return {**dict(self.constants), "num_warps": self.num_warps, "num_stages": self.num_stages}


@dataclass(frozen=True)
class Vendor:
    """The function to compare with, and what a call of it does, in units of the case."""

    name: str
    run: Callable[[], Any]
    amount: float


@dataclass(frozen=True)
class Problem:
    """The arrays of a case in the order of its pointers, the one that is written, and what it should hold."""

    arrays: tuple[Any, ...]
    out: Any
    expected: Any
    vendor: Vendor


@dataclass(frozen=True)
class Case:
    """`parameters` are those of the kernel before its constexprs: types of pointers as text, and numbers.

    `amount` is what a launch does, in 1e9 bytes (`unit` GB/s) or 1e12 operations (TFLOP/s). The first
    `num_quick` configurations are those of --quick.
    """

    family: str
    name: str
    kernel: str
    parameters: tuple[str | int | float, ...]
    configs: tuple[Config, ...]
    num_quick: int
    grid: Callable[[dict[str, Any]], tuple[int, ...]]
    amount: float
    unit: str
    make: Callable[[], Problem]

    @property
    def tolerance(self) -> float:
        """The relative error that is allowed, by the type of the results."""
        return TOLERANCE[str(self.parameters[0])[1:]]


def arguments(parameters: tuple[str | int | float, ...], arrays: Iterable[Any]) -> list[Any]:
    """A case's parameters, with the arrays in the place of the types of pointers."""
    left = iter(arrays)
    return [next(left) if isinstance(parameter, str) else parameter for parameter in parameters]


def dtype_names(parameters: tuple[str | int | float, ...]) -> list[str]:
    """The names that the elements of the pointers have in torch and in the language."""
    return [TORCH_NAMES[parameter[1:]] for parameter in parameters if isinstance(parameter, str)]


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def relative_error(out: Any, expected: Any) -> float:
    """The norm of the difference over that of `expected`; NaN where an element was not written."""
    difference = out.double().sub_(expected)
    return float(difference.norm() / expected.double().norm())
