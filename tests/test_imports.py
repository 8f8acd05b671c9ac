"""Imports go one way: each package of `deuteron` imports those below it, and no two modules each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import deuteron

ROOT = Path(deuteron.__file__).parent
# From the bottom up. What is on one line does not know each other.
LEVELS = (
    "errors dtypes lazy cached_property forking interruptions progress whole_file pyinstaller",
    "settings json_fields once layout ptx",
    "tracebacks",
    "options language ir trusted_files",
    "machine analysis toolchain",
    "interpreter frontend warning_text",
    "passes",
    "backend",
    "knobs",
    "emulator compiler testing",
    "explorer",
    "runtime",
    "aot",
    "library warming",
    "compat",
    "tools",
    "__main__",
)
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names.split()}
DEFERRED = {("deuteron.compiler.kernel", "deuteron.explorer")}  # a kernel that shows itself; launches go without


@cache
def modules() -> dict[str, Path]:
    paths = sorted(ROOT.rglob("*.py"))
    return {
        ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in paths
    }


def imported_by(name: str) -> Iterator[tuple[str, bool]]:
    """The modules of Deuteron that a module imports, and whether at once; those for types alone are left out."""
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(modules()[name].read_text()), True)]
    while pending:
        node, at_once = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "deuteron":
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules() else node.module, at_once
        at_once = at_once and not isinstance(node, ast.FunctionDef)
        pending += [(child, at_once) for child in ast.iter_child_nodes(node)]


def package_of(name: str) -> str:
    return (name.split(".") + [""])[1]


def test_every_package_has_its_level():
    assert {package_of(name) for name in modules()} - {""} == LEVEL.keys()


def test_imports_go_down():
    upwards = [
        f"{name} imports {other}"
        for name in modules()
        for other, _ in imported_by(name)
        if package_of(name) and package_of(other) not in ("", package_of(name))
        if LEVEL[package_of(other)] >= LEVEL[package_of(name)] and (name, other) not in DEFERRED
    ]
    assert not upwards


def test_no_module_imports_itself_in_the_end():
    imports = {name: {other for other, at_once in imported_by(name) if at_once and other != name} for name in modules()}
    del imports["deuteron"]  # public names, which are imported when they are asked for
    while leaves := {name for name, others in imports.items() if not others & imports.keys()}:
        for name in leaves:
            del imports[name]
    assert not imports
