"""Launches whose kernels are mutated: those of `tests/kernels`, of the examples, and of the GPU's benchmark.

launch = rng.choice(launches())(rng)      a Launched: of a case that has several, one of them
"""

from __future__ import annotations

import importlib
import inspect
import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.gpu import case as benchmark
from benchmarks.gpu import everyday, projects
from benchmarks.gpu.peers import load_kernels
from deuteron.dtypes import FLOATS
from deuteron.runtime.jit import JITFunction

ROOT = Path(__file__).parents[3]
ARRAY_NAMES = {declared.signature: declared.array_name for declared in FLOATS}
ROOM = 1 << 14
"""Elements of an array that a benchmark's kernel is given: more than most of the small ones have."""
LIMITS = (1, 2, 16, 64)
"""Of integers, which may be indices or lengths."""


@dataclass(frozen=True)
class Launched:
    """A kernel with all its arguments by name, as they were before the launch."""

    kernel: JITFunction
    grid: tuple[int, ...]
    given: dict[str, Any]


@cache
def launches() -> list[Callable[[random.Random], Launched]]:
    """By name, so that a seed gives one program."""
    cases = _of_tests("tests.kernels.families").CASES
    return [
        *(lambda rng, make=cases[name]: _of_case(make, rng) for name in sorted(cases)),
        *(lambda rng, name=name: _of_example(name, rng) for name in EXAMPLES),
        *(lambda rng, case=case: of_benchmark(case, rng) for case in benchmark_cases()),
    ]


def _of_tests(module: str) -> ModuleType:
    """A module of `tests`; the examples can be imported from now on, too.

    By its whole name: a test that compiles a file `kernels.py` leaves a module `kernels`.
    """
    sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "examples")) if path not in sys.path]
    return importlib.import_module(module)


def _of_case(make: Callable, rng: random.Random) -> Launched:
    """One of its launches; what comes before it is interpreted."""
    case = make(np.random.default_rng(0))
    chosen = rng.choice(case.launches)
    with mock.patch.dict(os.environ, {"DEUTERON_INTERPRET": "1"}):
        for step in case.steps:
            if step is chosen:
                return _launched(chosen.kernel, chosen.grid, chosen.args, chosen.options)
            step()
    raise AssertionError("a launch is one of the steps")


def _launched(kernel: JITFunction, grid: Any, args: Any, options: dict[str, Any]) -> Launched:
    parameters = inspect.signature(kernel.fn).parameters
    defaults = {name: p.default for name, p in parameters.items() if p.default is not p.empty}
    given = {**defaults, **dict(zip(parameters, args, strict=False)), **options}
    return Launched(kernel, grid(given) if callable(grid) else tuple(grid), given)


EXAMPLES: dict[str, Callable[[Any, Callable], Any]] = {
    "attention": lambda m, a: m.attention(*(a(2, 37, 16) for _ in range(3)), causal=True, block_m=16, block_n=16),
    "layer_norm": lambda m, a: m.layer_norm(a(5, 90), a(90), a(90), block=64),
    "matmul_grouped": lambda m, a: m.matmul_grouped(
        a(40, 50, dtype="float16"), a(50, 70, dtype="float16"), block_m=16, block_n=32, block_k=16
    ),
}
"""A function of the example on small arrays; what it launches is what is taken."""


class _Found(Exception):
    """Carries what an example launches."""


def _of_example(name: str, rng: random.Random) -> Launched:
    def array(*shape: int, dtype: str = "float32") -> np.ndarray:
        return np.random.default_rng(0).standard_normal(shape).astype(dtype)

    def launch(kernel: JITFunction, grid: Any) -> Callable[..., None]:
        def found(*args: Any, **options: Any) -> None:
            raise _Found(_launched(kernel, grid, args, options))

        return found

    with mock.patch.object(JITFunction, "__getitem__", launch):
        try:
            EXAMPLES[name](importlib.import_module(name), array)
        except _Found as found:
            return found.args[0]
    raise AssertionError(f"examples/{name}.py launches nothing")


def benchmark_cases() -> list[benchmark.Case]:
    """The small ones of the GPU's benchmark, by name."""
    families = (*everyday.FAMILIES, *projects.FAMILIES)
    return sorted((case for f in families for case in f.cases(is_small=True)), key=lambda case: case.name)


def of_benchmark(case: benchmark.Case, rng: random.Random) -> Launched:
    """With arrays that have room for what most cases are given: theirs are torch's, which need not be there."""
    kernel = getattr(load_kernels("deuteron", case.source), case.kernel)
    args = [_drawn(p, rng) if isinstance(p, str) else p for p in case.parameters]
    config = rng.choice(case.configs)
    return _launched(kernel, case.grid(dict(config.constants)), args, config.keywords())


def _drawn(pointer: str, rng: random.Random) -> np.ndarray:
    """For a pointer, `*fp16`: numbers; integers that may be indices, or lengths."""
    element = pointer[1:]
    if element in ARRAY_NAMES:
        return _of_tests("tests.kernels.case").normal(np.random.default_rng(0), ROOM, ARRAY_NAMES[element])
    bound = 127 if element in ("i8", "u8") else rng.choice(LIMITS)
    return np.random.default_rng(0).integers(0, bound, ROOM, element.replace("i", "int").replace("u", "uint"))
