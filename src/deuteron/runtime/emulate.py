"""Launching on the emulator (DEUTERON_EMULATE=1): compiled for a GPU as far as PTX, which then runs on the CPU.

Neither a GPU nor ptxas is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deuteron.backend.cuda.backend import CUDABackend, emit_ptx_alone
from deuteron.backend.cuda.launch.driver import check_grid
from deuteron.backend.cuda.target import architecture
from deuteron.compiler import ASTSource, CompiledKernel
from deuteron.compiler.driver import compile_with, resolve_target
from deuteron.errors import LaunchError
from deuteron.forking import undivided
from deuteron.options import Target
from deuteron.runtime.mock import TensorWrapper
from deuteron.settings import settings

DEFAULT_TARGET = Target("cuda", 90)


class PTXBackend(CUDABackend):
    """The CUDA backend as far as PTX, for which no ptxas is started."""

    stages = tuple(
        replace(stage, run=emit_ptx_alone) if stage.name == "ptx" else stage
        for stage in CUDABackend.stages
        if stage.name not in ("cubin", "sass")
    )

    def fingerprint(self, target: Target) -> str:
        return f"{architecture(target.arch).name} emulated"


BACKEND = PTXBackend()


def emulated_target() -> Target:
    """DEUTERON_TARGET, or a GPU of compute capability 9.0."""
    target = resolve_target(None) if settings.target else DEFAULT_TARGET
    if target.backend != "cuda":
        raise LaunchError(f"DEUTERON_EMULATE runs kernels for GPUs, and DEUTERON_TARGET is '{target}': say cuda:80")
    return target


def compile_for_emulator(source: ASTSource, options: Mapping[str, Any]) -> CompiledKernel:
    return compile_with(BACKEND, source, emulated_target(), options)


def emulate(kernel: CompiledKernel, args: Sequence[Any], grid: tuple[int, int, int]) -> None:
    """Run a kernel with the arguments that are not constexpr, as the user passed them; grids are those of a GPU."""
    with undivided():
        from deuteron.emulator import run_kernel  # deferred: to compile does not need it

    check_grid(grid, kernel.metadata)
    run_kernel(kernel.asm["ptx"], kernel.metadata, grid, [_argument(arg) for arg in args])


def _argument(arg: Any) -> Any:
    """What the emulator takes for it: NumPy arrays, torch's tensors on the CPU and numbers."""
    if isinstance(arg, TensorWrapper):
        return _argument(arg.base)
    if hasattr(arg, "data_ptr") or isinstance(arg, np.ndarray | np.generic):
        return arg
    if hasattr(arg, "__array_interface__"):
        return np.asarray(arg)
    return np.from_dlpack(arg) if hasattr(arg, "__dlpack__") else arg
