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
from pathlib import Path
from typing import Any

from benchmarks.gpu.case import Case, Config, Problem, arguments, dtype_names

SOURCE = Path(__file__).with_name("kernels.py")
Failures = dict[tuple[str, str, str], str]


@dataclass(frozen=True)
class Peer:
    """A compiler: its kernels, and what its warmup takes for an array's type."""

    name: str
    kernels: types.ModuleType
    dtypes: types.ModuleType

    def launcher(self, case: Case, config: Config, problem: Problem) -> Callable[[], Any]:
        """Launches the kernel; returns what the compiler knows of it."""
        keywords = config.keywords()
        passed = arguments(case.parameters, problem.arrays)
        grid = case.grid(dict(config.constants))
        launch = getattr(self.kernels, case.kernel)[grid]
        return lambda: launch(*passed, **keywords)

    def compile(self, kernel: str, parameters: tuple[str | int | float, ...], config: Config) -> None:
        """Compile for arrays that are aligned as torch aligns its own."""
        types_of_arrays = [getattr(self.dtypes, name) for name in dtype_names(parameters)]
        passed = arguments(parameters, types_of_arrays)
        getattr(self.kernels, kernel).warmup(*passed, grid=(1,), **config.keywords())


@functools.cache
def load_peer(name: str) -> Peer:
    kernels = load_kernels(name)
    return Peer(name, kernels, importlib.import_module("deuteron.language" if name == "deuteron" else "torch"))


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
                tokens = tuple(value if isinstance(value, str) else _token(value) for value in case.parameters)
                key = (peer, case.kernel, tokens, config)
                jobs.setdefault(key, ((peer, case.kernel, case.parameters, config), []))[1].append(
                    (case.name, config.label)
                )
        yield from ((key, job, names) for key, (job, names) in jobs.items())


def _token(value: int | float) -> str:
    """What a compile depends on of a number."""
    if isinstance(value, float):
        return "float"
    return "1" if value == 1 else f"{value.bit_length() > 31} {value % 16 == 0}"


def _compile(peer: str, kernel: str, parameters: tuple[str | int | float, ...], config: Config) -> None:
    load_peer(peer).compile(kernel, parameters, config)


def _reason(future: Future[None]) -> str | None:
    error = future.exception()
    return None if error is None else describe(error)


def describe(error: BaseException) -> str:
    """The error's class and the line that says most: the first of its message."""
    return f"{type(error).__name__}: {str(error).strip()[:200]}".split("\n")[0]
