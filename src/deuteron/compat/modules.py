"""What each of Triton's modules holds, in terms of Deuteron.

A name that a program can import from Triton and that has a meaning here is in one of these tables; one that has none is
absent, so that a program which needs it fails where it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import deuteron
from deuteron import compiler, errors, knobs, language, runtime, testing
from deuteron.backend import get_backend
from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.compat import mxfp
from deuteron.language import extra, function, math, random, reductions, sorting, standard, types
from deuteron.options import Target, settings
from deuteron.runtime import autotuner, jit
from deuteron.runtime import driver as active_driver
from deuteron.runtime.driver import Driver

# The version of the language that is spoken here; programs compare it.
TRITON_VERSION = "3.9.0"


def set_allocator(allocator: Any) -> None:
    """Accepted without effect: kernels on the CPU get their scratch memory from Deuteron."""


def triton_modules() -> dict[str, Mapping[str, Any] | ModuleType]:
    """The content of every module, parents before their children."""
    return {
        "triton": _public(deuteron) | {"__version__": TRITON_VERSION, "set_allocator": set_allocator},
        "triton.errors": {"TritonError": errors.DeuteronError},
        "triton.knobs": knobs,
        **_language(),
        **_runtime(),
        **_compiler(),
        "triton.testing": _public(testing),
        "triton.tools": {},
        "triton.tools.mxfp": {"MXFP4Tensor": mxfp.MXFP4Tensor, "MXScaleTensor": mxfp.MXScaleTensor},
        "triton.tools.tensor_descriptor": {"TensorDescriptor": TensorDescriptor},
    }


def _public(module: ModuleType) -> dict[str, Any]:
    """The names of a module, without what it has of Python's own and the submodules that have a table here."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and not (isinstance(value, ModuleType) and value.__name__.startswith("deuteron"))
    }


def _language() -> dict[str, Mapping[str, Any]]:
    names = _public(language)
    libdevice = _public(extra.libdevice)
    return {
        "triton.language": names,
        "triton.language.core": names | _core(),
        "triton.language.standard": _public(standard) | _public(reductions) | _public(sorting),
        "triton.language.random": _public(random),
        "triton.language.math": libdevice | _public(math),
        "triton.language.libdevice": libdevice,
        "triton.language.extra": {},
        "triton.language.extra.libdevice": libdevice,
        "triton.language.extra.cuda": _public(extra.cuda),
        "triton.language.extra.cuda.libdevice": libdevice,
    }


def _core() -> dict[str, Any]:
    """What Triton's core module has besides the public names."""
    return {
        "_aggregate": deuteron.aggregate,
        "must_use_result": deuteron.must_use_result,
        "get_int_dtype": types.get_int_dtype,
    }


def _runtime() -> dict[str, Mapping[str, Any]]:
    failures = {
        "OutOfResources": errors.OutOfResources,
        "InterpreterError": errors.MemoryAccessError,
        "AutotunerError": errors.AutotunerError,
        "PTXASError": errors.InternalError,
    }
    jit_names = {
        "JITFunction": jit.JITFunction,
        "KernelInterface": runtime.KernelInterface,
        "MockTensor": runtime.MockTensor,
        "TensorWrapper": runtime.TensorWrapper,
        "reinterpret": runtime.reinterpret,
        "jit": jit.jit,
        "constexpr_function": function.constexpr_function,
        "must_use_result": function.must_use_result,
        "JITCallable": function.Function,
        "KernelParam": function.Parameter,
    }
    tuning = {
        "Autotuner": runtime.Autotuner,
        "Config": runtime.Config,
        "Heuristics": runtime.Heuristics,
        "autotune": autotuner.autotune,
        "heuristics": runtime.heuristics,
    }
    return {
        "triton.runtime": failures | tuning | _without(jit_names, "jit") | {"driver": active_driver},
        "triton.runtime.jit": jit_names,
        "triton.runtime.autotuner": tuning | {"OutOfResources": errors.OutOfResources},
        "triton.runtime.driver": {"driver": active_driver},
        "triton.runtime.errors": failures,
        "triton.runtime.cache": {"default_cache_dir": lambda: str(settings.cache_dir)},
    }


def _without(names: Mapping[str, Any], unwanted: str) -> dict[str, Any]:
    return {name: value for name, value in names.items() if name != unwanted}


def _compiler() -> dict[str, Mapping[str, Any]]:
    failures = {
        "CompilationError": errors.CompilationError,
        "UnsupportedLanguageConstruct": errors.UnsupportedLanguageConstruct,
        "CompileTimeAssertionFailure": errors.CompileTimeAssertionFailure,
    }
    names = {
        "compile": compiler.compile,
        "ASTSource": compiler.ASTSource,
        "IRSource": compiler.IRSource,
        "CompiledKernel": compiler.CompiledKernel,
        "make_backend": get_backend,
    }
    return {
        "triton.compiler": failures | names,
        "triton.compiler.compiler": failures | names | {"GPUTarget": Target},
        "triton.compiler.errors": failures,
        "triton.compiler.code_generator": failures,
        "triton.backends": {},
        "triton.backends.compiler": {"GPUTarget": Target},
        "triton.backends.driver": {"DriverBase": Driver, "GPUDriver": Driver},
    }
