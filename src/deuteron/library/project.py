"""Reads the libraries that a file declares: deuteron.toml, or a Python file that makes `Library` objects.

    read_project(Path("deuteron.toml"))          {"norms": Library(...), "attention": Library(...)}

A mistake is a UsageError at its line, with what would be known there.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from deuteron.errors import Location, UsageError, not_read, suggest
from deuteron.library.declaration import KERNEL_KEYS, LIBRARY_KEYS, Kernel, Library
from deuteron.library.places import Places
from deuteron.options import is_option
from deuteron.tracebacks import api_boundary

_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")


@api_boundary
def read_project(path: Path) -> dict[str, Library]:
    """The libraries of a file, by name; raises UsageError."""
    if not path.is_file():
        what = f"'{path}' is no file" if path.exists() else f"there is no '{path}'"
        raise UsageError(f"{what}: it declares the libraries that are built")
    libraries = _of_python(path) if path.suffix == ".py" else _of_toml(path)
    if not libraries:
        begins = 'NAME = Library("NAME", ...)' if path.suffix == ".py" else "[library.NAME]"
        raise UsageError(f"'{path}' declares no library: {begins} begins one")
    return libraries


def _of_python(path: Path) -> dict[str, Library]:
    from deuteron.aot.load import load_module  # deferred: brings LLVM

    found = [value for value in vars(load_module(path)).values() if isinstance(value, Library)]
    folder = path.absolute().parent
    return {library.name: dataclasses.replace(library, root=folder / library.root, file=path.name) for library in found}


def _of_toml(path: Path) -> dict[str, Library]:
    try:
        text = path.read_text(encoding="utf-8-sig")  # as TOML is, wherever; with a byte order mark or without
        declared = tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"cannot read '{path}': it nests too deep") from error
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path, str(error)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise not_read(f"'{path}'", error) from None
    places = Places(str(path), text)
    _check_keys(declared, ["library"], places.at)
    libraries = declared.get("library", {})
    if not isinstance(libraries, Mapping):
        raise UsageError("a library is a table: [library.NAME]", places.at("library"))
    return {name: _library(name, table, places, path) for name, table in libraries.items()}


def _library(name: str, table: Any, places: Places, path: Path) -> Library:
    place = partial(places.at, "library", name)
    if not isinstance(table, Mapping):
        raise UsageError(f"library '{name}' is a table: [library.{name}]", place())
    _check_keys(table, LIBRARY_KEYS, place)
    if "targets" not in table:
        raise UsageError(f"library '{name}' has no 'targets', such as [\"cpu\", \"cuda:90\"]", place())
    kernels = table.get("kernel", [])
    if not isinstance(kernels, list):
        raise UsageError(f"the kernels of a library are tables in a list: [[library.{name}.kernel]]", place("kernel"))
    made = [_kernel(kernel, partial(place, "kernel", i)) for i, kernel in enumerate(kernels)]
    others = {key: value for key, value in table.items() if key != "kernel"}
    return Library(name, kernels=made, root=path.absolute().parent, file=path.name, place=place, **others)


def _kernel(table: Any, place: partial[Location]) -> Kernel:
    if not isinstance(table, Mapping):
        raise UsageError("a kernel is a table", place())
    for key in table:
        if key not in KERNEL_KEYS and is_option(key):
            raise UsageError(f"'{key}' is an option: options = {{ {key} = ... }}", place(key))
    _check_keys(table, KERNEL_KEYS, place)
    for key in ("name", "grid"):
        if key not in table:
            raise UsageError(f"a kernel needs '{key}'", place())
    return Kernel(**table, place=place)


def _check_keys(table: Mapping[str, Any], known: Iterable[str], place: Any) -> None:
    for key in table:
        if key not in known:
            raise UsageError(f"unknown key '{key}'.{suggest(key, known)} Known are {', '.join(known)}", place(key))


def _syntax_error(path: Path, message: str) -> UsageError:
    found = _TOML_PLACE.search(message)
    if not found:
        return UsageError(f"'{path}' is not TOML: {message}", Location(str(path), 1))
    return UsageError(_TOML_PLACE.sub("", message), Location(str(path), int(found[1]), int(found[2])))
