"""The files of a library itself, made from the records of its kernels: its functions in C and other languages.

    own_files(library, variants, entries, read)
    {"norms.h": "...", "norms.c": "...", "norms.hpp": "...", "norms.rs": "...", "CMakeLists.txt": "...", ...}

`read` gives the content of a kernel's file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deuteron.aot.dispatch import Functions
from deuteron.aot.link import KernelsMeet, group
from deuteron.aot.metadata import KernelRecord
from deuteron.aot.templates import render
from deuteron.aot.tuned import Table, tables_of
from deuteron.errors import UsageError
from deuteron.library.c_code import library_chooser
from deuteron.library.cxx_code import library_cxx
from deuteron.library.declaration import Library
from deuteron.library.manifest import Entry
from deuteron.library.python_code import library_python
from deuteron.library.raw_code import raw_library
from deuteron.library.rust_code import library_rust
from deuteron.library.torch_code import library_torch
from deuteron.library.variants import Variant, source_names
from deuteron.runtime.autotuning.tuned_file import read_tuned


def own_files(
    library: Library, variants: Sequence[Variant], entries: Sequence[Entry], read: Callable[[str], bytes]
) -> dict[str, str | bytes]:
    """The files by name; raises UsageError for kernels that cannot be in one library."""
    name = library.name
    functions = _functions(library, variants, [entry.record for entry in entries])
    overloads = {entry.record.out_name: entry.overload for entry in entries}
    chooser = library_chooser(name, functions, _tables(library, variants, functions))
    own: dict[str, str | bytes] = {
        f"{name}.h": chooser.header(),
        f"{name}.c": chooser.source(),
        f"{name}.hpp": library_cxx(chooser, library.cxx_namespace, overloads),
        f"{name}.rs": library_rust(name, functions),
        "CMakeLists.txt": render("library.cmake", name=name, sources="\n  ".join(source_names(library))),
        **raw_library(name, entries, read),
    }
    if library.torch:
        own[f"{name}_torch.cpp"] = library_torch(name, functions)
    if library.shared:
        own[f"{name}.py"] = library_python(name, functions)
    return own


def _functions(library: Library, variants: Sequence[Variant], records: Sequence[KernelRecord]) -> Functions:
    try:
        functions = group(records)
    except KernelsMeet as error:
        first, later = (variants[records.index(record)] for record in (error.first, error.record))
        kernel = library.kernels[later.index]
        message = error.between(first.describe(), later.describe())
        raise kernel.error(message, "out_name" if kernel.out_name else "name") from None
    except UsageError as error:
        raise library.error(error.message, "kernel") from None
    first = library.cxx_namespace.partition("::")[0]
    if first in functions:
        raise library.error(f"the namespace '{first}' is called as a function: give another 'namespace'", "namespace")
    return functions


def _tables(library: Library, variants: Sequence[Variant], functions: Functions) -> dict[str, Table]:
    """What functions choose by whose kernels were tuned."""
    found: dict[str, Table] = {}
    for index, kernel in enumerate(library.kernels):
        if kernel.tuned is None:
            continue
        names = {variant.function for variant in variants if variant.index == index}
        path = library.root / kernel.tuned
        try:
            found |= tables_of({name: functions[name] for name in functions if name in names}, [read_tuned(path)])
        except UsageError as error:
            hint = "" if path.exists() else f". `deuteron tune {library.name}` measures them"
            raise kernel.error(f"{error.message}{hint}", "tuned") from None
    return found
