"""Compiles kernels for GPUs and runs them in the PTX emulator.

kernel = emulate(add, x, y, out, 1000, BLOCK=256, grid=(4,), num_warps=2)
assert instructions_with(kernel, "ld.global.v4.b32")

The emulator takes PTX: what `compile_for` gives is assembled when its cubin or resources are asked for, and in one
test of a few, by its seed, at once: ptxas is to accept what we emit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from deuteron.backend.arrays import element_type
from deuteron.backend.cuda.backend import CUDABackend
from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.compiler import ASTSource, CompiledKernel, IRSource
from deuteron.compiler import compile as compile_kernel
from deuteron.compiler.driver import compile_with, get_backend, resolve_target
from deuteron.emulator import EmulatorOptions, run_kernel
from deuteron.runtime.emulate import BACKEND as PTX_BACKEND
from deuteron.runtime.jit import JITFunction

ASSEMBLED = 4  # of so many tests one
OPTIONS = (
    "num_warps",
    "num_stages",
    "num_ctas",
    "maxnreg",
    "enable_fp_fusion",
    "enable_reflect_ftz",
    "debug",
    "plain_arguments",
    "may_alias",
)
ARCHITECTURES = (80, 86, 89, 90, 100, 120)


def signature_of(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"*{element_type(value.dtype)}"
    if isinstance(value, TensorDescriptor):
        return f"tensordesc<{element_type(value.base.dtype)}[{','.join(map(str, value.block_shape))}]>"
    if isinstance(value, bool):
        return "i1"
    return "fp32" if isinstance(value, float) else "i32"


def is_aligned(value: object) -> bool:
    """Whether a launch from Python says that it is divisible by 16; negative numbers never are."""
    if isinstance(value, np.ndarray):
        return value.ctypes.data % 16 == 0
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0 and value % 16 == 0


def aligned(values: np.ndarray) -> np.ndarray:
    """A copy at an address that is divisible by 16."""
    space = np.zeros(values.nbytes + 16, np.uint8)
    begin = -space.ctypes.data % 16
    array = space[begin : begin + values.nbytes].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


def compile_for(target: str, kernel: JITFunction, *args: object, **given) -> CompiledKernel:
    """The kernel for the types, and the divisibility by 16, of these arguments; keywords: options and constexprs."""
    options = {name: given.pop(name) for name in OPTIONS if name in given}
    names = kernel.arg_names[: len(args)]
    signature = {name: signature_of(value) for name, value in zip(names, args, strict=True)}
    attrs = {(index,): [["tt.divisibility", 16]] for index, value in enumerate(args) if is_aligned(value)}
    source = ASTSource(kernel, signature, given, attrs)
    if not target.startswith("cuda") or int(os.environ.get("DEUTERON_EMULATOR_SEED", 0)) % ASSEMBLED == 0:
        return compile_kernel(source, target, options)
    return _assembled_when_asked(source, target, options)


def _assembled_when_asked(source: ASTSource, target: str, options: Mapping[str, Any]) -> CompiledKernel:
    """The text of a stage gives the same cubin as the kernel: `test_backend.py` tests it."""
    kernel = compile_with(PTX_BACKEND, source, resolve_target(target), PTX_BACKEND.make_options(options))

    @cache
    def assembled() -> CompiledKernel:
        return compile_text(kernel.asm["ptx"], target, "ptx", **options)

    for name in {stage.name for stage in CUDABackend.stages} - {*kernel.asm}:
        kernel.asm.add(name, lambda name=name: assembled().asm[name])
    kernel.metadata = replace(kernel.metadata, resources=_OnDemand(lambda: assembled().metadata.resources))
    kernel._backend = get_backend(kernel.metadata.target)
    return kernel


class _OnDemand(Mapping):
    def __init__(self, make: Callable[[], Mapping[str, Any]]):
        self._make = make

    def __getitem__(self, name: str) -> Any:
        return self._make()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make())

    def __len__(self) -> int:
        return len(self._make())


def compile_text(text: str, target: str = "cuda:90", stage: str = "ttir", **options) -> CompiledKernel:
    return compile_kernel(IRSource.from_text(text, stage), target, options)


def emulate(kernel: JITFunction, *args, grid: Sequence[int] = (1,), target: str = "cuda:90", **given) -> CompiledKernel:
    """Compile and run; arrays change in place."""
    compiled = compile_for(target, kernel, *args, **given)
    emulate_compiled(compiled, *args, grid=grid)
    return compiled


def emulate_compiled(
    compiled: CompiledKernel,
    *args,
    grid: Sequence[int] = (1,),
    printed: list | None = None,
    asynchronous: str = "random",
) -> None:
    """`asynchronous`: when copies and dots that are waited for happen: late, early, random."""
    given = {} if printed is None else {"print": printed.append}
    options = EmulatorOptions(asynchronous=asynchronous, **given)
    run_kernel(compiled.asm["ptx"], compiled.metadata, grid, args, options)


def instructions_with(kernel: CompiledKernel, text: str) -> list[str]:
    """The instructions of a kernel's PTX that contain a text."""
    lines = [line.strip() for line in kernel.asm["ptx"].splitlines()]
    body = " ".join(line for line in lines if not line.startswith(("//", ".loc", ".file")))
    return [line.strip() for line in body.split(";") if text in line]
