"""Finds a kernel in a user's Python file.

    load_kernel(Path("attention.py"), "fmha_kernel")     the Function that the file defines
    load_source(Path("attention.py"), "fmha_kernel", "*fp32, i32, 64")     it with its signature, to be compiled

The file is executed as Python executes a module, with its folder on the import path, and may say `import triton`.
What it raises is shown in few lines: the exception, and the line of the file that led to it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from deuteron.aot.signature import Signature, parse_signature
from deuteron.compiler import ASTSource, IRSource
from deuteron.errors import DeuteronError, Location, UsageError
from deuteron.language.function import Function


@dataclass(frozen=True)
class KernelSource:
    """A kernel to be compiled. `extras` is what else tells it from others of its name and signature."""

    name: str
    signature: Signature
    source: ASTSource | IRSource
    extras: tuple[str, ...] = ()


def load_source(path: Path, name: str, signature: str) -> KernelSource:
    """The kernel of this name with the signature that a text gives."""
    fn = load_kernel(path, name)
    parsed = parse_signature(signature, fn.params, name)
    return KernelSource(name, parsed, ASTSource(fn, parsed.types, parsed.constexprs, parsed.attrs))


def load_kernel(path: Path, name: str) -> Function:
    """The kernel of this name; raises UsageError where the file cannot be run or has none."""
    module = load_module(path)
    kernel = _unwrapped(getattr(module, name, None))
    if kernel is None:
        kernels = sorted(key for key, value in vars(module).items() if _unwrapped(value))
        known = f"it has {', '.join(kernels)}" if kernels else "it has none"
        raise UsageError(f"'{path}' has no kernel '{name}' (a function decorated with @jit): {known}")
    return kernel


def load_module(path: Path) -> ModuleType:
    """The module that a file defines, executed."""
    if not path.is_file():
        raise UsageError(f"the file '{path}' does not exist" if not path.exists() else f"'{path}' is not a file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise UsageError(f"'{path}' is not a Python file: its name must end in .py")
    importlib.import_module("deuteron.compat")  # not before: it changes what `import triton` means
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and pickle look a class's module up
    folder = str(path.parent.resolve())
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    except DeuteronError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"cannot import '{path}': {_described(error)}", _place(error, path)) from error
    finally:
        sys.path.remove(folder)
    return module


def _unwrapped(value: Any) -> Function | None:
    """The kernel within what @autotune and @heuristics make of it; None where there is none."""
    for _ in range(10):
        if isinstance(value, Function):
            return value
        value = getattr(value, "fn", None) if not isinstance(value, type) else None
    return None


def _described(error: BaseException) -> str:
    return " ".join("".join(traceback.format_exception_only(error)[-1:]).split())


def _place(error: BaseException, path: Path) -> Location | None:
    """The line of the file where the exception came from, as near to its origin as it goes."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 1, error.offset or 1)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path.absolute()]
    if not frames:
        return None
    frame = frames[-1]
    return Location(frame.filename, frame.lineno or 1, (frame.colno or 0) + 1, (frame.end_colno or 0) + 1)
