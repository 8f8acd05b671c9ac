"""The files that a module was made from: itself, and the modules that it imports, however indirectly.

    before = set(sys.modules)
    module = importlib.import_module("kernels.norms")
    dependencies_of(module, before)       (kernels/__init__.py, kernels/norms.py, kernels/parts.py)

The imports are read from the source files and looked up among the modules that are loaded, so that one which an earlier
import has already brought counts too. What was loaded in the meantime is added: `importlib.import_module(name)`. Of
installed packages (site-packages) all loaded files are named, without following what these import in turn. Python's own
library and Deuteron, whose versions are known otherwise, are left out.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from deuteron.language.functions.lambda_source import syntax_tree
from deuteron.toolchain import PACKAGE

_INSTALLED = {"site-packages", "dist-packages"}
_STANDARD = sysconfig.get_path("stdlib")  # asked for once: it takes 0.3 ms, as long as all else that a module needs


def dependencies_of(module: ModuleType, before: Iterable[str] | None = None) -> tuple[Path, ...]:
    """The files, sorted. `before` are the names of modules that were loaded when the import of this one began."""
    names = _closure(module, set() if before is None else set(sys.modules) - set(before))
    files = {file for name in names if (file := _file(sys.modules.get(name)))} | {_file(module)}
    return tuple(sorted(file for file in files if file))


def is_installed(path: Path) -> bool:
    """Whether a file belongs to a package that was installed."""
    return not _INSTALLED.isdisjoint(path.parts)


def _closure(module: ModuleType, loaded: set[str]) -> set[str]:
    """The names of all modules that count."""
    found: set[str] = set()
    pending = [module, *(sys.modules[name] for name in sorted(loaded) if name in sys.modules)]
    while pending:
        current = pending.pop()
        file = _file(current)
        if file is None:
            continue
        if is_installed(file):
            found |= _of_package(current.__name__.partition(".")[0])
            continue
        new = _imports(current, file) - found
        found |= new | {current.__name__}
        pending += [sys.modules[name] for name in sorted(new)]
    return found


def _of_package(package: str) -> set[str]:
    return {name for name in list(sys.modules) if name.partition(".")[0] == package}


def _imports(module: ModuleType, file: Path) -> set[str]:
    """The names of the loaded modules that a source file imports."""
    names = set()
    for node in ast.walk(_parsed(file)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, node)
            names.update([base, *(f"{base}.{alias.name}" for alias in node.names)])
    return {part for name in names for part in _with_parents(name) if part in sys.modules}


@cache
def _parsed(file: Path) -> ast.AST:
    """The syntax of a file; of what is not Python, such as a module written in C, an empty one."""
    try:
        return syntax_tree(file.read_bytes()) if file.suffix == ".py" else ast.Module([], [])
    except (OSError, SyntaxError):
        return ast.Module([], [])


def _base(module: ModuleType, node: ast.ImportFrom) -> str:
    """`package.module` of `from ..module import name`."""
    if not node.level:
        return node.module or ""
    package = (module.__package__ or "").split(".")
    parts = package[: len(package) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _file(module: ModuleType | None) -> Path | None:
    """The file of a module that counts."""
    name = getattr(module, "__file__", None)
    if not isinstance(name, str):
        return None
    path = Path(name)
    is_standard = path.is_relative_to(_STANDARD) and not is_installed(path)
    return None if is_standard or path.is_relative_to(PACKAGE) else path
