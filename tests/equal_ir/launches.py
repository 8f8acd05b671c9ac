"""Launches of the kernels of tests/kernels on the emulator, and the same ones compiled with rewrites between passes.

launch, *_ = recorded("swiglu_forward", "cuda:90", seed)
launch.passes                                            ["inline", ..., "slice-tiles"]
launch.outcome({17: [reorder, split_loop]}, seed)        Outcome(["reorder after inline", ...], fault="")
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import deuteron.passes
from deuteron.compiler import CompiledKernel
from deuteron.compiler.driver import compile_with
from deuteron.ir.verifier import verify_ir
from deuteron.passes.gpu.memory.allocate_shared import AllocateShared
from deuteron.runtime import emulate as emulator
from deuteron.runtime.emulate import BACKEND
from tests.kernels.families import CASES

Rewrite = Callable[[ModuleOp, np.random.Generator], bool]
Rewrites = Mapping[int, Sequence[Rewrite]]
TOLERANCE = 4e-3  # of the largest number stored: sums are added up in another order, and rounded to 8 bits

_run_passes = deuteron.passes.run_passes


@dataclass(frozen=True)
class Outcome:
    """What was rewritten, in words, and what went wrong, or nothing."""

    done: list[str]
    fault: str


@dataclass
class RecordedLaunch:
    """A launch, its arguments as they were before it, and what was in its arrays after it."""

    kernel: CompiledKernel
    args: Sequence[Any]
    grid: tuple[int, int, int]
    stored: Sequence[np.ndarray]

    @property
    def passes(self) -> list[str]:
        """The names of those after which something may be rewritten, in order."""
        pipelines = BACKEND.pipelines(self.kernel.metadata.target, self._options)
        names = [one.name for passes in pipelines.values() for one in passes]
        return names[: names.index(AllocateShared.name)]

    def outcome(self, rewrites: Rewrites, seed: int) -> Outcome:
        """Compile with these rewrites after the passes of these numbers, launch, compare; by number -1 first of all."""
        args = [_copied(arg) for arg in self.args]
        with _watching(rewrites, seed) as watched:
            try:
                emulator.emulate(self._compiled(f"rewritten_{seed}"), args, self.grid)
            except Exception as error:
                return Outcome(watched.done, "".join(traceback.format_exception(error)[-3:]))
        compared = zip(_arrays(args), self.stored, strict=True)
        faults = [f"array {number}: {fault}" for number, pair in enumerate(compared) if (fault := _difference(*pair))]
        return Outcome(watched.done, "; ".join(faults))

    def _compiled(self, symbol: str) -> CompiledKernel:
        return compile_with(BACKEND, self.kernel.src, self.kernel.metadata.target, self._options, symbol)

    @property
    def _options(self) -> Any:
        return BACKEND.make_options(self.kernel.metadata.options)


class _Watched:
    """Passes as they are run, with rewrites after some."""

    def __init__(self, rewrites: Rewrites, seed: int):
        self.names: list[str] = []
        self.done: list[str] = []
        self._rewrites, self._seed, self._is_over = rewrites, seed, False

    def run(self, module: ModuleOp, passes: Sequence[ModulePass], *others: Any, **given: Any) -> None:
        _run_passes(module, list(self._with_rewrites(passes)), *others, **given)

    def _with_rewrites(self, passes: Sequence[ModulePass]) -> Iterator[Any]:
        if not self.names and not self._is_over:
            yield from self._rewriting(-1, "frontend")
        for one in passes:
            yield one
            self._is_over = self._is_over or isinstance(one, AllocateShared)
            if not self._is_over:
                yield from self._rewriting(len(self.names), one.name)
                self.names.append(one.name)

    def _rewriting(self, number: int, after: str) -> Iterator[_Rewriting]:
        if number in self._rewrites:
            rng = np.random.default_rng([self._seed, number + 1])
            yield _Rewriting(f"rewrites after {after}", self._rewrites[number], rng, self.done)


@dataclass
class _Rewriting:
    name: str
    rewrites: Sequence[Rewrite]
    rng: np.random.Generator
    done: list[str]

    def apply(self, context: Context, module: ModuleOp) -> None:
        for rewrite in self.rewrites:
            if rewrite(module, self.rng):
                self.done.append(f"{rewrite.__name__}, {self.name}")
                verify_ir(module, self.done[-1])


@contextmanager
def _watching(rewrites: Rewrites, seed: int) -> Iterator[_Watched]:
    watched = _Watched(rewrites, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deuteron.passes, "run_passes", watched.run)
        patch.setenv("DEUTERON_ALWAYS_COMPILE", "1")
        yield watched


def recorded(name: str, target: str, seed: int) -> list[RecordedLaunch]:
    """The launches of a case, done on the emulator."""
    found: list[RecordedLaunch] = []
    of_emulator = emulator.emulate

    def emulate(kernel: CompiledKernel, args: Sequence[Any], grid: tuple[int, int, int]) -> None:
        before = [_copied(arg) for arg in args]
        of_emulator(kernel, args, grid)
        found.append(RecordedLaunch(kernel, before, grid, [array.copy() for array in _arrays(args)]))

    with pytest.MonkeyPatch.context() as patch:
        for key, value in {"DEUTERON_INTERPRET": "0", "DEUTERON_EMULATE": "1", "DEUTERON_TARGET": target}.items():
            patch.setenv(key, value)
        patch.setattr(emulator, "emulate", emulate)
        for step in CASES[name](np.random.default_rng(seed)).steps:
            step()
    return found


def _arrays(args: Sequence[Any]) -> list[np.ndarray]:
    arrays = (arg.base if hasattr(arg, "block_shape") else arg for arg in args)
    return [array for array in arrays if isinstance(array, np.ndarray)]


def _copied(arg: Any) -> Any:
    """Arrays and descriptors with memory of their own, at the same distance from a multiple of 16 bytes."""
    if hasattr(arg, "block_shape"):
        return replace(arg, base=_copied(arg.base))
    if not isinstance(arg, np.ndarray):
        return arg
    if not arg.flags.c_contiguous:
        return arg.copy("K")
    space = np.zeros(arg.nbytes + 16, np.uint8)
    begin = (arg.ctypes.data - space.ctypes.data) % 16
    copy = np.ndarray(arg.shape, arg.dtype, space.data, begin)
    copy[...] = arg
    return copy


def _difference(got: np.ndarray, expected: np.ndarray) -> str:
    if got.dtype.kind in "iub":
        count = int(np.sum(got != expected))
        return f"{count} of {got.size} integers differ" if count else ""
    a, b = got.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return f"{int(np.sum(np.isnan(a) != np.isnan(b)))} of {a.size} are not numbers, or should not be"
    with np.errstate(invalid="ignore"):
        off = np.nanmax(np.where(a == b, 0, np.abs(a - b)), initial=0)
    limit = TOLERANCE * max(np.abs(b[np.isfinite(b)]).max(initial=0), 1e-30)
    return "" if off <= limit else f"off by {off}, where {limit} is allowed"
