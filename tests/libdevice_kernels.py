"""Kernels that call many functions of libdevice, written as source, and arguments for them."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deuteron.language.extern import Extern, Overload
from deuteron.language.extra import libdevice

SIZE = 128
DTYPES = {"fp32": "float32", "fp64": "float64"}
HEAD = """import deuteron as triton
import deuteron.language as tl
from deuteron.language.extra import libdevice

@triton.jit
def kernel({arguments}, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
"""


def dtype_name(type) -> str:
    return DTYPES.get(type.name, type.name)


def result_dtype(function: Extern, overload: Overload) -> str:
    return "bool" if function.result is not None else dtype_name(overload.result)


def functions() -> dict[str, Extern]:
    return {name: f for name, f in vars(libdevice).items() if isinstance(f, Extern)}


def by_types() -> dict[tuple[str, ...], list[tuple[str, Overload]]]:
    """All overloads, by the types that they take."""
    groups: dict[tuple[str, ...], list[tuple[str, Overload]]] = {}
    for name, function in functions().items():
        for overload in function.overloads:
            groups.setdefault(tuple(map(dtype_name, overload.parameters)), []).append((name, overload))
    return groups


def write_kernel(folder: Path, calls: Sequence[tuple[str, Overload]]):
    """kernel[(1,)](x0, x1, ..., out0, out1, ..., BLOCK=SIZE): one output for each call."""
    arity = len(calls[0][1].parameters)
    inputs, outputs = [f"x{i}" for i in range(arity)], [f"out{i}" for i in range(len(calls))]
    lines = [HEAD.format(arguments=", ".join(inputs + outputs))]
    lines += [f"    {x} = tl.load({x} + i)\n" for x in inputs]
    for (name, _), out in zip(calls, outputs, strict=True):
        lines.append(f"    tl.store({out} + i, libdevice.{name}({', '.join(inputs)}))\n")
    path = folder / "libdevice_kernel.py"
    path.write_text("".join(lines))
    spec = importlib.util.spec_from_file_location("libdevice_kernel", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def special_values(dtype: str) -> np.ndarray:
    if np.dtype(dtype).kind != "f":
        limits = np.iinfo(dtype)
        numbers = [0, 1, 2, 3, 7, 31, 64, 0x3210, 0x7654, limits.max, limits.max - 1, limits.min, limits.min + 1]
        return np.array(numbers + [limits.max // 2, limits.max // 3], dtype)
    format = np.finfo(dtype)
    sizes = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 20.0, 1e6, np.inf]
    sizes += [format.smallest_subnormal, format.smallest_normal, format.max, 2.0**31, 2.0**63, 1 - format.epsneg]
    return np.array([*sizes, *(-x for x in sizes), np.nan], dtype)


def arguments(rng: np.random.Generator, types: Sequence[str]) -> list[np.ndarray]:
    """Special values, with one another where there are several arguments, and then numbers of all sizes."""
    special = [special_values(dtype) for dtype in types]
    half = SIZE // 2
    chosen = [rng.permutation(np.resize(values, half)) for values in special]
    drawn = [np.concatenate([a, draw(rng, b, SIZE - half)]) for a, b in zip(chosen, types, strict=True)]
    if len(types) == 2 and types[0] == "int32" and types[1] != "int32":  # an order, as many steps as it is large
        drawn[0] = rng.integers(-2, 150, SIZE, np.int32)
    return drawn


def draw(rng: np.random.Generator, dtype: str, count: int) -> np.ndarray:
    """Integers of all lengths; floats between -10 and 10, and of all exponents between -20 and 20."""
    if np.dtype(dtype).kind != "f":
        bits = rng.integers(0, 2**63, count, np.uint64) >> rng.integers(0, 63, count).astype(np.uint64)
        return np.where(rng.integers(0, 2, count) == 1, bits, ~bits + np.uint64(1)).astype(dtype)
    spread = np.exp2(rng.uniform(-20, 20, count)) * rng.choice([-1, 1], count)
    return np.where(rng.integers(0, 2, count) == 1, rng.uniform(-10, 10, count), spread).astype(dtype)
