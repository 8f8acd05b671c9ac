"""Deuteron compiles kernels written in the Triton tile language, ahead of time into C and just in time from Python.

    import deuteron
    import deuteron.language as tl

    @deuteron.jit
    def double(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

    double[(deuteron.cdiv(n, 256),)](x, n, BLOCK=256)

A module is imported when a name of it is first asked for, the compiler itself (xDSL, LLVM) when the first kernel is
compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deuteron.lazy import lazy_names

if TYPE_CHECKING:
    from deuteron import errors as errors
    from deuteron import knobs as knobs
    from deuteron import language as language
    from deuteron import testing as testing
    from deuteron.compiler import ASTSource as ASTSource
    from deuteron.compiler import CompiledKernel as CompiledKernel
    from deuteron.compiler import IRSource as IRSource
    from deuteron.compiler import compile as compile
    from deuteron.errors import CompilationError as CompilationError
    from deuteron.errors import DeuteronError as DeuteronError
    from deuteron.errors import OutOfResources as OutOfResources
    from deuteron.errors import TritonError as TritonError
    from deuteron.language.aggregate import aggregate as aggregate
    from deuteron.language.functions.function import must_use_result as must_use_result
    from deuteron.language.functions.source_functions import constexpr_function as constexpr_function
    from deuteron.options import Target as Target
    from deuteron.runtime import Config as Config
    from deuteron.runtime import JITFunction as JITFunction
    from deuteron.runtime import KernelInterface as KernelInterface
    from deuteron.runtime import MockTensor as MockTensor
    from deuteron.runtime import TensorWrapper as TensorWrapper
    from deuteron.runtime import autotune as autotune
    from deuteron.runtime import cdiv as cdiv
    from deuteron.runtime import heuristics as heuristics
    from deuteron.runtime import next_power_of_2 as next_power_of_2
    from deuteron.runtime import reinterpret as reinterpret
    from deuteron.runtime.async_compile import AsyncCompileMode as AsyncCompileMode
    from deuteron.runtime.async_compile import FutureKernel as FutureKernel
    from deuteron.runtime.jit import jit as jit
    from deuteron.runtime.recompiles import recompiles as recompiles
    from deuteron.warming import warm_up as warm_up

__version__ = "0.1.0"

_NAMES = {
    "deuteron.compiler": "ASTSource CompiledKernel IRSource compile",
    "deuteron.errors": "CompilationError DeuteronError OutOfResources TritonError",
    "deuteron.language.aggregate": "aggregate",
    "deuteron.language.functions.function": "must_use_result",
    "deuteron.language.functions.source_functions": "constexpr_function",
    "deuteron.options": "Target",
    "deuteron.runtime.async_compile": "AsyncCompileMode FutureKernel",
    "deuteron.runtime.autotuning.decorator": "autotune",
    "deuteron.runtime.autotuning.config": "Config",
    "deuteron.runtime.heuristics": "heuristics",
    "deuteron.runtime.interface": "KernelInterface",
    "deuteron.runtime.jit": "JITFunction jit",
    "deuteron.runtime.mock": "MockTensor TensorWrapper reinterpret",
    "deuteron.runtime.recompiles": "recompiles",
    "deuteron.runtime.sizes": "cdiv next_power_of_2",
    "deuteron.warming": "warm_up",
}
_SUBMODULES = "backend compiler dtypes errors knobs language options runtime testing"

__getattr__, __dir__ = lazy_names(globals(), _NAMES, _SUBMODULES)
