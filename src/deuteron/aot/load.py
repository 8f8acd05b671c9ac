"""Finds a kernel in a user's Python file.

    load_module(Path("attention.py"))                    what the file defines
    load_source(Path("attention.py"), "fmha_kernel", "*fp32, i32, 64")     it with its signature, to be compiled
    load_source(ModuleName("ops.attention"), ...)                          of a module, as `python -m` finds it

The file is executed as Python executes a module, with its folder on the import path, and may say `import triton`. One
that has relative imports is imported as the module that it is of its package. What it raises is shown in few lines: the
exception, and the line of the file that led to it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from deuteron.aot.dependencies import dependencies_of
from deuteron.aot.signature import Signature, parse_signature
from deuteron.compiler import ASTSource, IRSource
from deuteron.errors import DeuteronError, Location, UsageError, suggest
from deuteron.language.functions.function import Function
from deuteron.language.functions.lambda_source import syntax_tree


@dataclass(frozen=True)
class KernelSource:
    """A kernel to be compiled. `extras` is what else tells it from others of its name and signature, `dependencies` the
    files that it was read from.
    """

    name: str
    signature: Signature
    source: ASTSource | IRSource
    extras: tuple[str, ...] = ()
    dependencies: tuple[Path, ...] = ()


class ModuleName(str):
    """A module by the name that Python imports it by: `package.norms`."""


def load_source(path: Path | ModuleName, name: str, signature: str) -> KernelSource:
    """The kernel of this name with the signature that a text gives."""
    before = set(sys.modules)
    module = load_module(path)
    fn = kernel_of(module, path, name)
    parsed = parse_signature(signature, fn.params, name)
    source = ASTSource(fn, parsed.types, parsed.constexprs, parsed.attrs)
    return KernelSource(name, parsed, source, dependencies=dependencies_of(module, before))


def kernel_of(module: ModuleType, path: Path | ModuleName, name: str) -> Function:
    """The kernel of this name in a module; raises UsageError where it has none."""
    kernel = unwrapped(getattr(module, name, None))
    if kernel is None:
        kernels = sorted(key for key, value in vars(module).items() if unwrapped(value))
        known = f"it has {', '.join(kernels)}" if kernels else "it has none"
        advice = suggest(name, kernels) and f".{suggest(name, kernels)}"
        raise UsageError(f"'{path}' has no kernel '{name}' (a function decorated with @jit): {known}{advice}")
    return kernel


def load_module(path: Path | ModuleName) -> ModuleType:
    """The module of this name, or that a file defines, executed; raises UsageError where that cannot be."""
    importlib.import_module("deuteron.compat")  # not before: it changes what `import triton` means
    if isinstance(path, ModuleName):
        return _imported(path, Path.cwd(), path)
    if not path.is_file():
        raise UsageError(f"the file '{path}' does not exist" if not path.exists() else f"'{path}' is not a file")
    if _has_relative_imports(path):
        return _of_package(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None:
        raise UsageError(f"'{path}' is not a Python file: its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)  # dataclasses and pickle look a class's module up
    with _importing(path, path.parent):
        spec.loader.exec_module(module)
    return module


def _has_relative_imports(path: Path) -> bool:
    try:
        nodes = ast.walk(syntax_tree(path.read_bytes()))
        return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in nodes)
    except (SyntaxError, ValueError):
        return False  # importing it says what is wrong


def _of_package(path: Path) -> ModuleType:
    """The module that a file is of its package: of the outermost folder that, like those within, has an __init__.py."""
    names, folder = [path.stem], path.absolute().parent
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    if len(names) == 1:
        raise UsageError(
            f"'{path}' has relative imports, and its folder is no package (it has no __init__.py): "
            "name the module with -m, as Python imports it"
        )
    module = _imported(ModuleName(".".join(names)), folder, path)
    if not Path(module.__file__ or "").samefile(path):
        raise UsageError(f"'{path}' is module {module.__name__}, as which Python imports '{module.__file__}' instead")
    return module


def _imported(name: ModuleName, folder: Path, path: Path | ModuleName) -> ModuleType:
    with _importing(path, folder):
        return importlib.import_module(name)


@contextlib.contextmanager
def _importing(path: Path | ModuleName, folder: Path) -> Iterator[None]:
    """With the folder on the import path; what is raised becomes a UsageError at the line that led to it."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    except DeuteronError:
        raise
    except (Exception, SystemExit) as error:
        described = f"{_described(error)}{_found_above(error, path)}"
        raise UsageError(f"cannot import '{path}': {described}", _place(error, path)) from error
    finally:
        sys.path.remove(entry)


def unwrapped(value: Any) -> Function | None:
    """The kernel within what @autotune and @heuristics make of it; None where there is none."""
    for _ in range(10):
        if isinstance(value, Function):
            return value
        value = getattr(value, "fn", None) if not isinstance(value, type) else None
    return None


def _described(error: BaseException) -> str:
    return " ".join("".join(traceback.format_exception_only(error)[-1:]).split())


def _found_above(error: BaseException, path: Path | ModuleName) -> str:
    """Where the module is that was not found, if a folder above that of the file has it, and the name to import by; of
    what is named as a module and is a file, how to name it.
    """
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return ""
    if isinstance(path, ModuleName):
        return f'. It is a file: name it without -m, in deuteron.toml source = "{path}"' if Path(path).is_file() else ""
    missing = Path(*error.name.split("."))
    for folder in path.absolute().parent.parents:
        if (folder / missing).is_dir() or (folder / missing).with_suffix(".py").is_file():
            name = ".".join(path.absolute().relative_to(folder).with_suffix("").parts)
            return (
                f". It is in '{folder}': Python imports this file from there as the module {name}. "
                f'Say -m {name}, in deuteron.toml module = "{name}"'
            )
    return ""


def _place(error: BaseException, path: Path | ModuleName) -> Location | None:
    """The line of the file where the exception came from, as near to its origin as it goes."""
    if isinstance(error, SyntaxError) and error.filename:
        return Location(error.filename, error.lineno or 1, error.offset or 1)
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == Path(path).absolute()
    ]
    if not frames:
        return None
    frame = frames[-1]
    return Location(frame.filename, frame.lineno or 1, (frame.colno or 0) + 1, (frame.end_colno or 0) + 1)
