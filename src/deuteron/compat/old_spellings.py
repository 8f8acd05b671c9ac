"""What older versions of Triton called otherwise, outside of kernels; each use says in a warning what it is called now.

triton.compile(add, signature="*fp32,i32", constants={2: 128}, num_warps=4)          Triton 2.0, 2.1
triton.code_gen.JITFunction                                                          before Triton 2.0
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from deuteron import compiler
from deuteron.language.function import Function


def compile(src: Any = None, target: Any = None, options: Mapping[str, Any] | None = None, **older: Any) -> Any:
    """`deuteron.compile`, or, of a function with a signature, what Triton 2 called so.

    Args of Triton 2: `fn`, `signature` (types by name or index, or a text with commas), `constants`, `device`, `cc`,
    and the options of the target.
    """
    src = older.pop("fn", src)
    if not isinstance(src, Function):
        return compiler.compile(src, target, options, **older)
    warnings.warn("triton.compile(fn, signature=...) is called triton.compile(ASTSource(fn, ...)) now", stacklevel=2)
    constants = dict(older.pop("constants", {}))
    signature = _by_name(src, older.pop("signature"), {_name(src, key) for key in constants})
    capability = older.pop("cc", None)
    older = {name: value for name, value in older.items() if name not in ("device", "device_type", "configs")}
    source = compiler.ASTSource(src, signature, constants)
    return compiler.compile(source, target or (f"cuda:{capability}" if capability else None), older)


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
