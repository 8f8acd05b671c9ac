"""Kernels as they are launched: the examples, and kernels for what they do not use, for two GPUs.

for launch in recorded("attention", "cuda:90"): launch.run(launch.ptx, seed=3)      its arrays after it
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
from backend.cuda.launching import aligned
from emulator.mutations import kernels

import deuteron.compat  # noqa: F401  (an example says `import triton`)
import deuteron.emulator
from deuteron.backend.metadata import KernelMetadata
from deuteron.emulator import EmulatorOptions, run_kernel
from deuteron.passes.gpu.descriptors.infer_descriptors import InferDescriptors

_EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@dataclass(frozen=True)
class Launch:
    """One launch; `args` as they were before it."""

    name: str
    ptx: str
    metadata: KernelMetadata
    grid: tuple[int, ...]
    args: Sequence[object]

    def run(self, ptx: str, seed: int) -> list[np.ndarray]:
        """Its arrays, after a run of some PTX in the place of its own."""
        copies = {id(arg): aligned(arg) for arg in self.args if isinstance(arg, np.ndarray)}
        args = [copies.get(id(arg), arg) for arg in self.args]
        run_kernel(ptx, self.metadata, self.grid, args, EmulatorOptions("random", seed))
        return list(copies.values())


def recorded(subject: str, target: str) -> list[Launch]:
    """The launches of a subject, one for each kernel that differs."""
    found: dict[str, Launch] = {}

    def record(ptx: str, metadata: KernelMetadata, grid, args, options=None) -> None:
        if ptx not in found:
            copies = {id(arg): aligned(arg) for arg in args if isinstance(arg, np.ndarray)}
            kept = [copies.get(id(arg), arg) for arg in args]
            found[ptx] = Launch(f"{subject} {target}", ptx, metadata, tuple(grid), kept)
        run_kernel(ptx, metadata, grid, args, options)

    with _environment(target), mock.patch.object(deuteron.emulator, "run_kernel", record):
        SUBJECTS[subject](np.random.default_rng(0))
    return list(found.values())


@contextmanager
def _environment(target: str) -> Iterator[None]:
    given = {
        "DEUTERON_EMULATE": "1",
        "DEUTERON_INTERPRET": "0",
        "DEUTERON_TARGET": target,
        "DEUTERON_ALWAYS_COMPILE": "1",
    }
    with mock.patch.dict(os.environ, given):
        yield


def _example(name: str) -> ModuleType:
    return _load(_EXAMPLES / f"{name}.py")


def _kernel(name: str) -> Callable[[np.random.Generator], None]:
    return lambda rng: _load(Path(kernels.__file__)).SUBJECTS[name](rng)


def _load(path: Path) -> ModuleType:
    """A module of its own, whose kernels nobody has compiled before."""
    spec = importlib.util.spec_from_file_location(f"mutated_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _draw(rng: np.random.Generator, *shape: int, dtype: type = np.float16) -> np.ndarray:
    return aligned(rng.standard_normal(shape).astype(dtype))


def _matmul(rng: np.random.Generator) -> None:
    _example("matmul").matmul(_draw(rng, 64, 224), _draw(rng, 224, 64), 64, 64, 32)


def _matmul_grouped(rng: np.random.Generator) -> None:
    _example("matmul_grouped").matmul_grouped(_draw(rng, 64, 224), _draw(rng, 224, 64), 64, 64, 32)


def _attention(rng: np.random.Generator) -> None:
    _example("attention").attention(*(_draw(rng, 1, 192, 32) for _ in range(3)), causal=True, block_n=32)


def _flash_attention(rng: np.random.Generator) -> None:
    _example("flash_attention_forward").flash_attention(*(_draw(rng, 1, 160, 1, 32) for _ in range(3)), block_n=32)


def _softmax(rng: np.random.Generator) -> None:
    _example("softmax").softmax(_draw(rng, 2, 300, dtype=np.float32))


def _layer_norm(rng: np.random.Generator) -> None:
    x, weight, bias = (_draw(rng, *shape, dtype=np.float32) for shape in ((2, 300), (300,), (300,)))
    _example("layer_norm").layer_norm(x, weight, bias, block=256)


def _row_norm(rng: np.random.Generator) -> None:
    _example("row_norm_heuristics").row_norm(_draw(rng, 2, 300, dtype=np.float32))


def _by_pointers(run: Callable[[np.random.Generator], None]) -> Callable[[np.random.Generator], None]:
    """As where TMA cannot copy."""

    def pointers(rng: np.random.Generator) -> None:
        with mock.patch.object(InferDescriptors, "apply", lambda self, ctx, op: None):
            run(rng)

    return pointers


SUBJECTS: dict[str, Callable[[np.random.Generator], None]] = {
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "row_norm": _row_norm,
    "matmul": _matmul,
    "matmul_grouped": _matmul_grouped,
    "attention": _attention,
    "flash_attention": _flash_attention,
    "matmul by pointers": _by_pointers(_matmul),
    "attention by pointers": _by_pointers(_attention),
    "specialized by pointers": _by_pointers(_kernel("specialized")),
    **{name: _kernel(name) for name in kernels.SUBJECTS},
}
# What differs on a GPU without TMA and wgmma; the others are for one that has them.
ON_AMPERE = ("softmax", "matmul", "attention", "scan", "transpose", "loop sums")


def all_subjects() -> list[tuple[str, str]]:
    return [*((subject, "cuda:90") for subject in SUBJECTS), *((subject, "cuda:80") for subject in ON_AMPERE)]
