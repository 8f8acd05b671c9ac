"""Deuteron and Triton behind one interface, and compiles by a pool of processes.

    ours = load_peer("deuteron")
    ours.launcher(case, config, problem)()          launches
    precompile(["deuteron", "triton"], cases)       {("triton", case.name, config.label): "OutOfResources: ..."}

Time on a machine with a GPU is dear, and a compile uses one core: all are made first, by as many processes as there are
cores, and found in the caches on disk afterwards. The processes are forked before this one has touched the GPU.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.gpu.case import TORCH_NAMES, Case, Config, Descriptor, Parameter, Problem, elements

SOURCE = Path(__file__).with_name("kernels.py")
DESCRIPTORS = {"deuteron": "backend.tensor_descriptor", "triton": "tools.tensor_descriptor"}
Failures = dict[tuple[str, str, str], str]


@dataclass(frozen=True)
class Peer:
    """A compiler, by the name of its package, and its kernels."""

    name: str
    kernels: types.ModuleType

    def launcher(self, case: Case, config: Config, problem: Problem) -> Callable[[], Any]:
        """Launches the kernel; returns what the compiler knows of it."""
        keywords = config.keywords()
        passed = self._arguments(case.parameters, problem.arrays, config)
        launch = getattr(self.kernels, case.kernel)[case.grid(dict(config.constants))]
        return lambda: launch(*passed, **keywords)

    def compile(self, kernel: str, parameters: tuple[Parameter, ...], config: Config) -> None:
        """Compile for arrays that are aligned as torch aligns its own."""
        mock = self._module("runtime.jit").MockTensor
        arrays = [mock(self._dtype(element)) for element in elements(parameters)]
        passed = self._arguments(parameters, arrays, config)
        getattr(self.kernels, kernel).warmup(*passed, grid=(1,), **config.keywords())

    def _arguments(self, parameters: tuple[Parameter, ...], arrays: Iterable[Any], config: Config) -> list[Any]:
        """The parameters, with the arrays in the place of their types."""
        left, sizes = iter(arrays), dict(config.constants)
        return [self._argument(parameter, left, sizes) for parameter in parameters]

    def _argument(self, parameter: Parameter, arrays: Iterator[Any], sizes: dict[str, Any]) -> Any:
        if isinstance(parameter, str):
            return next(arrays)
        if not isinstance(parameter, Descriptor):
            return parameter
        strides = [prod(parameter.shape[axis + 1 :]) for axis in range(len(parameter.shape))]
        block = [sizes[name] for name in parameter.block]
        make = self._module(DESCRIPTORS[self.name]).TensorDescriptor
        return make(next(arrays), list(parameter.shape), strides, block)

    def _dtype(self, element: str) -> Any:
        if self.name == "deuteron":
            return self._module("language.signature").SCALARS[element]
        return getattr(importlib.import_module("torch"), TORCH_NAMES[element])

    def _module(self, name: str) -> types.ModuleType:
        return importlib.import_module(f"{self.name}.{name}")


@functools.cache
def load_peer(name: str) -> Peer:
    set_allocator = getattr(importlib.import_module(name), "set_allocator", None)
    if set_allocator:
        set_allocator(_allocate)
    return Peer(name, load_kernels(name))


def _allocate(size: int, alignment: int, stream: int | None) -> Any:
    """Memory on the GPU for descriptors that kernels make; torch's has 512 bytes' alignment."""
    import torch  # deferred: --precompile needs none

    return torch.empty(size, device="cuda", dtype=torch.int8)


def load_kernels(name: str) -> types.ModuleType:
    """kernels.py as a module, with the package of that name for `triton`; lines stay where they are."""
    text = SOURCE.read_text()
    if name != "triton":
        text = text.replace("import triton.language as", f"import {name}.language as")
        text = text.replace("import triton\n", f"import {name} as triton\n")
    module = types.ModuleType(f"benchmarks.gpu.kernels_{name}")
    module.__file__ = str(SOURCE)
    sys.modules[module.__name__] = module
    exec(compile(text, str(SOURCE), "exec"), module.__dict__)
    return module


def precompile(peers: Iterable[str], cases: list[tuple[Case, tuple[Config, ...]]]) -> Failures:
    """Compile everything; returns what could not be, with the reason."""
    for name in peers:
        load_peer(name)
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        pending = {key: (pool.submit(_compile, *job), names) for key, job, names in _jobs(peers, cases)}
        found = ((names, key[0], _reason(future)) for key, (future, names) in pending.items())
        return {(peer, *name): reason for names, peer, reason in found if reason for name in names}


def _jobs(peers: Iterable[str], cases: list[tuple[Case, tuple[Config, ...]]]) -> Iterator[tuple[Any, Any, Any]]:
    """A key, what to compile, and the names of the cases that share it: sizes differ, and the code does not."""
    for peer in peers:
        jobs: dict[Any, tuple[Any, list[tuple[str, str]]]] = {}
        for case, configs in cases:
            for config in configs:
                tokens = tuple(_token(value) for value in case.parameters)
                key = (peer, case.kernel, tokens, config)
                jobs.setdefault(key, ((peer, case.kernel, case.parameters, config), []))[1].append(
                    (case.name, config.label)
                )
        yield from ((key, job, names) for key, (job, names) in jobs.items())


def _token(value: Parameter) -> Any:
    """What a compile depends on of a parameter."""
    if isinstance(value, str):
        return value
    if isinstance(value, Descriptor):
        return value.element, value.block
    if isinstance(value, float):
        return "float"
    return "1" if value == 1 else f"{value.bit_length() > 31} {value % 16 == 0}"


def _compile(peer: str, kernel: str, parameters: tuple[Parameter, ...], config: Config) -> None:
    load_peer(peer).compile(kernel, parameters, config)


def _reason(future: Future[None]) -> str | None:
    error = future.exception()
    return None if error is None else describe(error)


def describe(error: BaseException) -> str:
    """The error's class and the line that says most: the first of its message."""
    return f"{type(error).__name__}: {str(error).strip()[:200]}".split("\n")[0]
