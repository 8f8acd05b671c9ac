"""Deuteron and Triton behind one interface, and compiles by a pool of processes.

    ours = load_peer("deuteron")
    ours.launcher(case, config, problem)()          launches
    precompile(["deuteron", "triton"], cases)       {("triton", case.name, config.label): "OutOfResources: ..."}
    load_peer("cubins:build/triton-3.9")            what `peer_cubins.py` made there

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from benchmarks.gpu.case import (
    TORCH_NAMES,
    Case,
    CodeKey,
    Config,
    Descriptor,
    Parameter,
    Problem,
    code_key,
    elements,
)
from benchmarks.gpu.cubins import CubinPeer

FOLDER = Path(__file__).parent
CUBINS = "cubins:"
DESCRIPTORS = {"deuteron": "backend.tensor_descriptor", "triton": "tools.tensor_descriptor"}
Failures = dict[tuple[str, str, str], str]
Cases = list[tuple[Case, tuple[Config, ...]]]
Group = list[tuple[Case, Config]]
Job = tuple[str, Group]
ENDED = "the compiler ended its process"


@dataclass(frozen=True)
class Peer:
    """A compiler, by the name of its package."""

    name: str

    def launcher(self, case: Case, config: Config, problem: Problem) -> Callable[[], Any]:
        """Launches the kernel; returns what the compiler knows of it."""
        keywords = config.keywords()
        passed = self._arguments(case.parameters, problem.arrays, config)
        kernel, grid = getattr(load_kernels(self.name, case.source), case.kernel), case.grid(dict(config.constants))
        return lambda: kernel[grid](*passed, **keywords)

    def compile(self, source: str, kernel: str, parameters: tuple[Parameter, ...], config: Config) -> None:
        """Compile for arrays that are aligned as torch aligns its own."""
        mock = self._module("runtime.jit").MockTensor
        arrays = [mock(self._dtype(element)) for element in elements(parameters)]
        passed = self._arguments(parameters, arrays, config)
        getattr(load_kernels(self.name, source), kernel).warmup(*passed, grid=(1,), **config.keywords())

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
def load_peer(name: str) -> Peer | CubinPeer:
    if name.startswith(CUBINS):
        return CubinPeer(Path(name.removeprefix(CUBINS)))
    set_allocator = getattr(importlib.import_module(name), "set_allocator", None)
    if set_allocator:
        set_allocator(_allocate)
    return Peer(name)


def _allocate(size: int, alignment: int, stream: int | None) -> Any:
    """Memory on the GPU for descriptors that kernels make; torch's has 512 bytes' alignment."""
    import torch  # deferred: --precompile needs none

    return torch.empty(size, device="cuda", dtype=torch.int8)


@functools.cache
def load_kernels(name: str, source: str) -> types.ModuleType:
    """A file of kernels as a module, with the package of that name for `triton`; lines stay where they are."""
    path = FOLDER / f"{source}.py"
    text = path.read_text()
    if name != "triton":
        text = text.replace("import triton.language as", f"import {name}.language as")
        text = text.replace("import triton\n", f"import {name} as triton\n")
    module = types.ModuleType(f"benchmarks.gpu.{source.replace('/', '.')}_{name}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def precompile(peers: Sequence[str], cases: Cases) -> Failures:
    """Compile everything; returns what could not be, with the reason."""
    compilers = [peer for peer in peers if not peer.startswith(CUBINS)]
    for peer, source in {(peer, case.source) for peer in compilers for case, _ in cases}:
        load_peer(peer)
        load_kernels(peer, source)
    groups = group_by_code(cases)
    jobs = [(peer, group) for peer in compilers for group in groups.values()]
    return {
        (peer, case.name, config.label): reason
        for peer, group, reason in _compile_all(jobs)
        if reason
        for case, config in group
    }


def _compile_all(jobs: list[Job]) -> Iterator[tuple[str, Group, str | None]]:
    """Why each could not be compiled. Each process has a list of its own: where a compiler ends it, the first job that
    is not done is to blame, and the rest are for new processes.
    """
    while jobs:
        lanes = [lane for i in range(os.cpu_count() or 1) if (lane := jobs[i :: os.cpu_count()])]
        pools = [ProcessPoolExecutor(1, multiprocessing.get_context("fork")) for _ in lanes]
        pending = [
            [pool.submit(_compile, *_sent(job)) for job in lane] for pool, lane in zip(pools, lanes, strict=True)
        ]
        jobs = []
        for lane, futures in zip(lanes, pending, strict=True):
            reasons = [_reason(future) for future in futures]
            num_done = next((i + 1 for i, reason in enumerate(reasons) if reason == ENDED), len(lane))
            jobs += lane[num_done:]
            yield from ((peer, group, reason) for (peer, group), reason in zip(lane[:num_done], reasons, strict=False))
        for pool in pools:
            pool.shutdown()


def _sent(job: Job) -> tuple[Any, ...]:
    peer, ((case, config), *_) = job
    return peer, case.source, case.kernel, case.parameters, config


def group_by_code(cases: Cases) -> dict[CodeKey, Group]:
    """Cases and configurations that share their code: sizes differ."""
    groups: dict[CodeKey, Group] = {}
    for case, config in ((case, config) for case, configs in cases for config in configs):
        groups.setdefault(code_key(case, config), []).append((case, config))
    return groups


def _compile(peer: str, source: str, kernel: str, parameters: tuple[Parameter, ...], config: Config) -> None:
    load_peer(peer).compile(source, kernel, parameters, config)


def _reason(future: Future[None]) -> str | None:
    error = future.exception()
    if isinstance(error, BrokenProcessPool):
        return ENDED
    return None if error is None else describe(error)


def describe(error: BaseException) -> str:
    """The error's class and the line that says most: the first of its message."""
    return f"{type(error).__name__}: {str(error).strip()[:200]}".split("\n")[0]
