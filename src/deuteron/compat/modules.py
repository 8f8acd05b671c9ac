"""What each of Triton's modules holds, in terms of Deuteron.

A name that a program can import from Triton and that has a meaning here is in one of these tables; one that has none is
absent, so that a program which needs it fails where it says so.

    cache_files.py    triton.runtime.cache         allocation.py    triton.runtime._allocation
    old_spellings.py  what older versions called otherwise
    matmul_perf_model.py  triton.ops.matmul_perf_model
    nested.py         triton._utils                toolkit.py       triton.tools.disasm, NVIDIA's folders
    core_names.py     private names of triton.language.core;  standard_names.py  of .standard
    cublas.py         triton._C.libtriton.nvidia.cublas
    proton.py, proton_viewer.py  triton.profiler
    argument_types.py, dependencies.py  of triton.runtime.jit
    experimental_descriptor.py  triton.tools.experimental_descriptor
    ragged.py         triton.tools.ragged_tma      internal_testing.py  triton._internal_testing
    gluon.py          triton.experimental.gluon
    absent.py         what there is not, and what to do instead
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import deuteron
from deuteron import compiler, errors, knobs, language, runtime, testing
from deuteron.backend.tensor_descriptor import TensorDescriptor
from deuteron.compat import cublas, mxfp, old_spellings
from deuteron.compat.allocation import ALLOCATION_NAMES
from deuteron.compat.argument_types import ARGUMENT_TYPE_NAMES
from deuteron.compat.backends import BACKENDS, IR_NAMES, BaseBackend, CPUBackend, CUDABackend, make_backend
from deuteron.compat.cache_files import CACHE_NAMES, get_cache_invalidating_env_vars, triton_key
from deuteron.compat.core_names import CORE_NAMES, SEMANTIC_NAMES, TARGET_NAMES
from deuteron.compat.dependencies import DependenciesFinder
from deuteron.compat.experimental_descriptor import EXPERIMENTAL_DESCRIPTOR_NAMES
from deuteron.compat.gluon import GLUON_LANGUAGE_NAMES, GLUON_NAMES
from deuteron.compat.internal_testing import TEST_NAMES
from deuteron.compat.matmul_perf_model import PERF_MODEL_NAMES
from deuteron.compat.nested import NESTED_NAMES
from deuteron.compat.proton import PROFILER_NAMES
from deuteron.compat.proton_viewer import VIEWER_NAMES
from deuteron.compat.ragged import RAGGED_NAMES
from deuteron.compat.standard_names import STANDARD_NAMES
from deuteron.compat.toolkit import DISASSEMBLY_NAMES, libcuda_dirs
from deuteron.knobs.hooks import LazyDict
from deuteron.language import (
    extra,
    math,
    random,
    reductions,
    sorting,
    standard,
    target_info,
)
from deuteron.language.functions import function, source_functions
from deuteron.options import CPUOptions, CUDAOptions, Target
from deuteron.runtime import async_compile, jit
from deuteron.runtime import driver as active_driver
from deuteron.runtime.cuda_device import CUDADriver
from deuteron.runtime.driver import Driver
from deuteron.runtime.driver_base import DriverBase
from deuteron.testing import bench

# The version of the language that is spoken here; programs compare it.
TRITON_VERSION = "3.9.0"
_OLD = "_experimental_"  # descriptors of Triton 3.0 to 3.3


def triton_modules() -> dict[str, Mapping[str, Any] | ModuleType]:
    """The content of every module, parents before their children."""
    allocators = {name: ALLOCATION_NAMES[name] for name in ("set_allocator", "set_profile_allocator")}
    return {
        "triton": _public(deuteron)
        | {"__version__": TRITON_VERSION, **old_spellings.NAMES}
        | {"InterpreterError": errors.MemoryAccessError, **allocators},
        "triton.errors": {"TritonError": errors.DeuteronError},
        "triton.knobs": knobs,
        "triton._utils": NESTED_NAMES,
        **_language(),
        **_runtime(),
        **_compiler(),
        **_backends(),
        "triton._C": {},
        "triton._C.libtriton": {"get_cache_invalidating_env_vars": get_cache_invalidating_env_vars},
        "triton._C.libtriton.ir": IR_NAMES,
        "triton._C.libtriton.nvidia": cublas.NAMES,
        "triton.testing": _public(testing) | {"_summarize_statistics": bench.summarise, "runtime": runtime},
        "triton.profiler": PROFILER_NAMES,
        "triton.profiler.viewer": VIEWER_NAMES,
        "triton._internal_testing": TEST_NAMES,
        "triton.experimental": {},
        "triton.experimental.gluon": GLUON_NAMES,
        "triton.experimental.gluon.language": GLUON_LANGUAGE_NAMES,
        "triton.ops": {},
        "triton.ops.matmul_perf_model": PERF_MODEL_NAMES,
        "triton.tools": {},
        "triton.tools.ragged_tma": RAGGED_NAMES,
        "triton.tools.experimental_descriptor": EXPERIMENTAL_DESCRIPTOR_NAMES,
        "triton.tools.mxfp": {"MXFP4Tensor": mxfp.MXFP4Tensor, "MXScaleTensor": mxfp.MXScaleTensor},
        "triton.tools.tensor_descriptor": {"TensorDescriptor": TensorDescriptor},
        "triton.tools.disasm": DISASSEMBLY_NAMES,
    }


def _public(module: ModuleType) -> dict[str, Any]:
    """The names of a module, without what it has of Python's own and the submodules that have a table here."""
    named = ((name, getattr(module, name)) for name in dir(module))  # those, too, that are imported when asked for
    return {
        name: value
        for name, value in named
        if not name.startswith("_") and not (isinstance(value, ModuleType) and value.__name__.startswith("deuteron"))
    }


def _language() -> dict[str, Mapping[str, Any]]:
    names = _public(language) | {name: value for name, value in vars(language).items() if name.startswith(_OLD)}
    names |= old_spellings.LANGUAGE_NAMES
    libdevice = _public(extra.libdevice) | {"fast_tanhf": extra.libdevice.tanh}  # AMD's
    return {
        "triton.language": names,
        "triton.language.core": names | CORE_NAMES,
        "triton.language.standard": _public(standard) | _public(reductions) | _public(sorting) | STANDARD_NAMES,
        "triton.language.semantic": SEMANTIC_NAMES,
        "triton.language.random": _public(random),
        "triton.language.math": libdevice | _public(math),
        "triton.language.libdevice": libdevice,
        "triton.language.target_info": _public(target_info) | TARGET_NAMES,
        "triton.language.extra": {},
        "triton.language.extra.libdevice": libdevice,
        "triton.language.extra.cpu": _public(extra.cpu),
        "triton.language.extra.cpu.libdevice": libdevice,
        "triton.language.extra.cuda": _public(extra.cuda),
        "triton.language.extra.cuda.utils": _public(extra.cuda),
        "triton.language.extra.cuda.gdc": _public(extra.cuda),
        "triton.language.extra.cuda.libdevice": libdevice,
    }


class InterpretedFunction:
    """Triton's kind of kernel in its interpreter. In Deuteron it is a JITFunction as ever: nothing is one of these."""


def _jit_names() -> dict[str, Any]:
    return {
        "JITFunction": jit.JITFunction,
        "KernelInterface": runtime.KernelInterface,
        "MockTensor": runtime.MockTensor,
        "TensorWrapper": runtime.TensorWrapper,
        "reinterpret": runtime.reinterpret,
        "jit": jit.jit,
        "DependenciesFinder": DependenciesFinder,
        "constexpr_function": source_functions.constexpr_function,
        "must_use_result": function.must_use_result,
        "JITCallable": function.Function,
        "KernelParam": function.Parameter,
        **ARGUMENT_TYPE_NAMES,
        **{name: NESTED_NAMES[name] for name in ("find_paths_if", "get_iterable_path", "type_canonicalisation_dict")},
        "ConstexprFunction": source_functions.CompileTimeFunction,
        "driver": active_driver,
        "knobs": knobs,
        "get_cache_invalidating_env_vars": get_cache_invalidating_env_vars,
        "get_device_key": lambda: active_driver.active.get_current_device(),
        "get_cuda_stream": lambda index=None: active_driver.active.get_current_stream(index),
        "get_current_device": lambda: active_driver.active.get_current_device(),
        "set_current_device": lambda index: active_driver.active.set_current_device(index),
    }


def _runtime() -> dict[str, Mapping[str, Any]]:
    failures = {
        "OutOfResources": errors.OutOfResources,
        "InterpreterError": errors.MemoryAccessError,
        "AutotunerError": errors.AutotunerError,
        "PTXASError": errors.AssemblerError,
        "TritonError": errors.DeuteronError,
    }
    jit_names = _jit_names()
    tuning = {
        "Autotuner": runtime.Autotuner,
        "Config": runtime.Config,
        "Heuristics": runtime.Heuristics,
        "autotune": old_spellings.autotune,
        "heuristics": runtime.heuristics,
    }
    active = {
        "driver": active_driver,
        "DriverBase": DriverBase,
        "GPUDriver": CUDADriver,
        "set_active": active_driver.set_active,
        "set_active_to_cpu": active_driver.set_active_to_cpu,
        "set_active_to_gpu": active_driver.set_active_to_gpu,
        "get_active_gpus": active_driver.get_active_gpus,
        "reset_active": active_driver.reset_active,
    }
    return {
        "triton.runtime": failures | tuning | _without(jit_names, "jit"),
        "triton.runtime.jit": jit_names,
        "triton.runtime.autotuner": tuning
        | failures
        | {"get_cache_manager": CACHE_NAMES["get_cache_manager"], "triton_key": triton_key}
        | {
            name: jit_names[name]
            for name in ("JITFunction", "KernelInterface", "driver", "knobs", "get_cache_invalidating_env_vars")
        },
        "triton.runtime.driver": active | old_spellings.DRIVER_NAMES,
        "triton.runtime.errors": failures,
        "triton.code_gen": jit_names | tuning | failures,
        "triton.runtime.interpreter": {"InterpretedFunction": InterpretedFunction},
        "triton.runtime.cache": CACHE_NAMES,
        "triton.runtime._allocation": ALLOCATION_NAMES,
        "triton.runtime._async_compile": {
            "AsyncCompileMode": async_compile.AsyncCompileMode,
            "FutureKernel": async_compile.FutureKernel,
            "active_mode": async_compile.active_mode,
        },
    }


def _without(names: Mapping[str, Any], unwanted: str) -> dict[str, Any]:
    return {name: value for name, value in names.items() if name != unwanted}


def max_shared_mem(device: int) -> int:
    """Bytes of shared memory that a program can have."""
    return active_driver.active.utils.get_device_properties(device)["max_shared_mem"]


def _compiler() -> dict[str, Mapping[str, Any]]:
    failures = {
        "CompilationError": errors.CompilationError,
        "UnsupportedLanguageConstruct": errors.UnsupportedLanguageConstruct,
        "CompileTimeAssertionFailure": errors.CompileTimeAssertionFailure,
        "TritonError": errors.DeuteronError,
        "OutOfResources": errors.OutOfResources,
    }
    names = {
        "compile": old_spellings.compile,
        "ASTSource": compiler.ASTSource,
        "IRSource": compiler.IRSource,
        "CompiledKernel": compiler.CompiledKernel,
        "LazyDict": LazyDict,
        "make_backend": make_backend,
        "max_shared_mem": max_shared_mem,
    }
    return {
        "triton.compiler": failures | names,
        "triton.compiler.compiler": failures
        | names
        | {"GPUTarget": Target, "triton_key": triton_key, "knobs": knobs}
        | {"driver": active_driver, "get_cache_manager": CACHE_NAMES["get_cache_manager"]},
        "triton.compiler.errors": failures,
        "triton.compiler.code_generator": failures,
    }


def _backends() -> dict[str, Mapping[str, Any]]:
    return {
        "triton.backends": {"backends": dict(BACKENDS), "BaseBackend": BaseBackend, "DriverBase": DriverBase},
        "triton.backends.compiler": {"GPUTarget": Target, "BaseBackend": BaseBackend},
        "triton.backends.driver": {"DriverBase": DriverBase, "GPUDriver": CUDADriver},
        "triton.backends.nvidia": {},
        "triton.backends.nvidia.compiler": {"CUDABackend": CUDABackend, "CUDAOptions": CUDAOptions},
        "triton.backends.nvidia.driver": {
            "CudaDriver": CUDADriver,
            "libcuda_dirs": libcuda_dirs,
            "ty_to_cpp": CUDADriver().map_python_to_cpp_type,
        },
        "triton.backends.cpu": {},
        "triton.backends.cpu.compiler": {"CPUBackend": CPUBackend, "CPUOptions": CPUOptions},
        "triton.backends.cpu.driver": {"CPUDriver": Driver},
        "triton.common": {},
        "triton.common.build": {"libcuda_dirs": libcuda_dirs},
    }
