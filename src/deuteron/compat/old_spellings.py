"""`triton.compile`, and what older versions of Triton called otherwise; each use says in a warning what to say now.

triton.compile(add, signature="*fp32,i32", constants={2: 128}, num_warps=4)          Triton 2.0, 2.1
triton.autotune(configs, key, None, None, 25, 100)   warmup and rep by position      Triton 2.1
triton.code_gen.JITFunction                                                          before Triton 2.0
triton.runtime.driver.CudaUtils().get_device_properties(0)                           Triton 2.1
@tl.constexpr_function                                                               Triton 3.4
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from deuteron import compiler
from deuteron.aot.targets import c_target
from deuteron.backend import get_backend
from deuteron.language.functions.function import Function
from deuteron.language.functions.source_functions import constexpr_function
from deuteron.options import option_names
from deuteron.runtime import driver
from deuteron.runtime.autotuning import decorator


def compile(src: Any = None, target: Any = None, options: Mapping[str, Any] | None = None, **older: Any) -> Any:
    """`deuteron.compile` for launchers of any kind, or, of a function with a signature, what Triton 2 called so.

    Programs that call it take the cubin and launch it themselves, with the arguments of the signature and
    `32 * metadata.num_warps` threads: on a GPU the option `plain_arguments` is on unless it is given.

    Args of Triton 2: `fn`, `signature` (types by name or index, or a text with commas), `constants`, `device`, `cc`,
    and the options of the target.
    """
    src = older.pop("fn", src)
    if not isinstance(src, Function):
        return _compile(src, target, options or {}, **older)
    warnings.warn("triton.compile(fn, signature=...) is called triton.compile(ASTSource(fn, ...)) now", stacklevel=2)
    constants = dict(older.pop("constants", {}))
    signature = _by_name(src, older.pop("signature"), {_name(src, key) for key in constants})
    capability = older.pop("cc", None)
    older = {name: value for name, value in older.items() if name not in ("device", "device_type", "configs")}
    source = compiler.ASTSource(src, signature, constants)
    return _compile(source, target or (f"cuda:{capability}" if capability else None), older)


def autotune(
    configs: Sequence[Any],
    key: Sequence[str],
    prune_configs_by: Mapping[str, Any] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Any = None,
    pre_hook: Any = None,
    *later: Any,
    **named: Any,
) -> Callable[[Any], Any]:
    """`deuteron.autotune`; numbers for `restore_value` and `pre_hook` are what Triton 2 had there: `warmup`, `rep`."""
    if not isinstance(restore_value, int | float):
        return decorator.autotune(
            configs, key, prune_configs_by, reset_to_zero, restore_value, pre_hook, *later, **named
        )
    warnings.warn("triton.autotune's fifth argument is restore_value now: say warmup= and rep=", stacklevel=2)
    times = {"warmup": restore_value} if pre_hook is None else {"warmup": restore_value, "rep": pre_hook}
    return decorator.autotune(configs, key, prune_configs_by, reset_to_zero, **times, **named)


def cuda_utils() -> Any:
    """What Triton 2 called `driver.active.utils`."""
    warnings.warn("triton.runtime.driver.CudaUtils() is called driver.active.utils now", stacklevel=2)
    return driver.active.utils


def _compile(source: Any, target: Any, options: Mapping[str, Any], **asked: Any) -> compiler.CompiledKernel:
    """Compile for launchers of any kind; `asm` then has the libraries that AOTInductor packs."""
    kernel = compiler.compile(source, target, {**_plain(target), **options}, in_folder=True, **asked)
    for name, make in c_target(kernel.metadata.target.backend).libraries.items():
        kernel.asm.add(name, partial(make, kernel.asm, kernel.metadata))
    return kernel


def _plain(target: Any) -> dict[str, bool]:
    """The option that a kernel for any launcher has, where the target has it."""
    options_class = get_backend(compiler.resolve_target(target)).options_class
    return {"plain_arguments": True} if "plain_arguments" in option_names(options_class) else {}


def _name(fn: Function, key: Any) -> str:
    return fn.arg_names[key] if isinstance(key, int) else key


def _by_name(fn: Function, signature: str | Mapping[Any, str], constants: set[str]) -> dict[str, str]:
    """The types of the parameters that are no constants."""
    if isinstance(signature, str):
        names = [name for name in fn.arg_names if name not in constants]
        given: dict[str, str] = dict(zip(names, signature.split(","), strict=False))
    else:
        given = {_name(fn, key): type for key, type in signature.items()}
    return {name: given.get(name, "constexpr").strip().partition(":")[0] for name in fn.arg_names}


NAMES = {"compile": compile, "autotune": autotune}
DRIVER_NAMES = {"CudaUtils": cuda_utils}
LANGUAGE_NAMES = {"constexpr_function": constexpr_function}
