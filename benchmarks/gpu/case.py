"""What is measured: a kernel of `kernels.py`, its arguments, the configurations to try, and what to compare with.

    Case("softmax", "softmax 16384x4096", "softmax", ("*fp32", "*fp32", 4096, 4096, 4096), configs, ...)

A case says only what a compile needs; `make` draws the inputs, on the GPU, when the case is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Of results, by the type of what they are made of. Tensor cores sum products of fp8 with 14 bits.
TOLERANCE = {"fp32": 1e-5, "fp16": 1e-3, "bf16": 5e-3, "fp8e4nv": 2e-2}
TORCH_NAMES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp8e4nv": "float8_e4m3fn"}


@dataclass(frozen=True)
class Descriptor:
    """A row-major array that is passed as a tensor descriptor. Its blocks have the sizes that these constexprs have."""

    element: str
    shape: tuple[int, ...]
    block: tuple[str, ...]


Parameter = str | int | float | Descriptor


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
    """`parameters` are those of the kernel before its constexprs: types of pointers as text, descriptors, numbers.

    `amount` is what a launch does, in 1e9 bytes (`unit` GB/s) or 1e12 operations (TFLOP/s). The first
    `num_quick` configurations are those of --quick.
    """

    family: str
    name: str
    kernel: str
    parameters: tuple[Parameter, ...]
    configs: tuple[Config, ...]
    num_quick: int
    grid: Callable[[dict[str, Any]], tuple[int, ...]]
    amount: float
    unit: str
    make: Callable[[], Problem]

    @property
    def tolerance(self) -> float:
        """The relative error that is allowed, by the type of the first array."""
        return TOLERANCE[elements(self.parameters)[0]]


def elements(parameters: tuple[Parameter, ...]) -> list[str]:
    """The types of the arrays' elements."""
    arrays = (parameter for parameter in parameters if isinstance(parameter, str | Descriptor))
    return [array.element if isinstance(array, Descriptor) else array[1:] for array in arrays]


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def relative_error(out: Any, expected: Any) -> float:
    """The norm of the difference over that of `expected`; NaN where an element was not written."""
    difference = out.double().sub_(expected)
    return float(difference.norm() / expected.double().norm())
