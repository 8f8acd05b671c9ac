"""What is measured: a kernel, its arguments, the configurations to try, and what to compare with.

    Case("softmax", "softmax 16384x4096", "softmax", ("*fp32", "*fp32", 4096, 4096, 4096), configs, ...)

A case says only what a compile needs; `make` draws the inputs, on the GPU, when the case is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Of results, by the type of what they are made of. Tensor cores sum products of fp8 with 14 bits.
TOLERANCE = {"fp32": 1e-5, "fp16": 1e-3, "bf16": 5e-3, "fp8e4nv": 2e-2, "i8": 5e-3}
TORCH_NAMES = {
    "fp32": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8e4nv": "float8_e4m3fn",
    "i8": "int8",
    "u8": "uint8",
    "fp8e5": "float8_e5m2",
    "i32": "int32",
    "i64": "int64",
}
# What tensor cores of an H100 or H200 SXM do at most, in TFLOP/s, by the type of what they multiply.
PEAK = {"fp32": 495.0, "fp16": 989.0, "bf16": 989.0, "fp8e4nv": 1979.0, "i8": 1979.0}


@dataclass(frozen=True)
class Descriptor:
    """A row-major array that is passed as a tensor descriptor. Its blocks have the sizes that these constexprs have."""

    element: str
    shape: tuple[int, ...]
    block: tuple[str, ...]


Parameter = str | int | float | Descriptor
CodeKey = tuple[Any, ...]


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
    """The function to compare with, and what a call of it does, in units of the case; None: as much as a launch."""

    name: str
    run: Callable[[], Any]
    amount: float | None = None


@dataclass(frozen=True)
class Output:
    """An array that is written, and what it should hold. `tolerance` is that of the case where it is None."""

    array: Any
    expected: Any
    tolerance: float | None = None


@dataclass(frozen=True)
class Problem:
    """The arrays of a case in the order of its pointers, those that are written, and what to compare with, if anything.

    `zeroed` are arrays that must hold zeros before each launch: what atomics add to. `restored` are those that a launch
    reads and writes, each with what it must hold before.
    """

    arrays: tuple[Any, ...]
    outputs: tuple[Output, ...]
    vendor: Vendor | None = None
    zeroed: tuple[Any, ...] = ()
    restored: tuple[tuple[Any, Any], ...] = ()

    def prepare(self) -> None:
        """What comes before each launch, and is not timed."""
        for array in self.zeroed:
            array.zero_()
        for array, original in self.restored:
            array.copy_(original)

    def poison(self) -> None:
        """Before a launch that is checked: an element that is not written is wrong."""
        for output in self.outputs:
            output.array.fill_(float("nan") if output.array.is_floating_point() else -77)


@dataclass(frozen=True)
class Case:
    """`parameters` are those of the kernel before its constexprs: types of pointers as text, descriptors, numbers.

    `amount` is what a launch does, in 1e9 bytes (`unit` GB/s) or 1e12 operations (TFLOP/s). The first
    `num_quick` configurations are those of --quick. `source` is the file that has the kernel, beside this one;
    `multiplied` the type of what tensor cores multiply, where that is not the first array's.
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
    source: str = "kernels"
    multiplied: str | None = None

    @property
    def tolerance(self) -> float:
        """The relative error that is allowed, by the type of the first array."""
        return TOLERANCE[elements(self.parameters)[0]]

    def limit(self, copy_rate: float) -> float:
        """The rate that memory (as fast as a copy, in GB/s) or tensor cores allow."""
        return copy_rate if self.unit == "GB/s" else PEAK[self.multiplied or elements(self.parameters)[0]]

    def error(self, problem: Problem) -> tuple[float, bool]:
        """The largest relative error of an output, and whether all are within their tolerances."""
        errors = [relative_error(output.array, output.expected) for output in problem.outputs]
        allowed = [self.tolerance if output.tolerance is None else output.tolerance for output in problem.outputs]
        is_right = all(error <= limit for error, limit in zip(errors, allowed, strict=True))
        return next((error for error in errors if error != error), max(errors)), is_right


def elements(parameters: tuple[Parameter, ...]) -> list[str]:
    """The types of the arrays' elements."""
    arrays = (parameter for parameter in parameters if isinstance(parameter, str | Descriptor))
    return [array.element if isinstance(array, Descriptor) else array[1:] for array in arrays]


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


def relative_error(out: Any, expected: Any) -> float:
    """The norm of the difference over that of `expected`; NaN where an element was not written."""
    expected = expected.double()
    difference, scale = float((out.double() - expected).norm()), float(expected.norm())
    return difference / scale if scale else difference


def code_key(case: Case, config: Config) -> CodeKey:
    """What a compile depends on."""
    return case.source, case.kernel, tuple(_token(value) for value in case.parameters), config


def _token(value: Parameter) -> Any:
    """What a compile depends on of a parameter."""
    if isinstance(value, str):
        return value
    if isinstance(value, Descriptor):
        return value.element, value.block
    if isinstance(value, float):
        return "float"
    return "1" if value == 1 else f"{value.bit_length() > 31} {value % 16 == 0}"
