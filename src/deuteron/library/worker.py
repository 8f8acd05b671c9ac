"""Compiles variants: what runs in a process of its own, which imports the kernels' module once.

    compile_variant(variant, root)       Compiled(the record's fields, {"kernels/rms_norm_fp16.6979ce4b.c": "..."}, ...)

A mistake that only the kernel shows, as an unknown parameter, is a `Mistake` with the keys of the declaration that it
is about; all other errors are texts, ready to be shown.
"""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from deuteron.aot.compile import HOST_TYPES, CompileRequest, EmittedKernel, emit_kernel
from deuteron.aot.grid import grid_scope
from deuteron.aot.grid_code import launchable_grid
from deuteron.aot.load import ModuleName, kernel_of, load_module
from deuteron.aot.signature import parse_signature
from deuteron.aot.targets import select_target
from deuteron.backend import get_backend
from deuteron.errors import DeuteronError, UsageError, of_machine, suggest
from deuteron.language.functions.function import Function, Parameter
from deuteron.library.raw_code import FOLDER
from deuteron.library.staleness import Sources, sources_of
from deuteron.library.variants import Variant
from deuteron.warning_text import warning_text

_OWN_FLAGS = ("num_warps", "num_stages", "num_ctas")


@dataclass(frozen=True)
class Compiled:
    """A compiled variant: the fields of its record, its files by name in the library's folder, what it was read from,
    seconds, what was warned of."""

    record: dict[str, Any]
    files: dict[str, str | bytes]
    code_bytes: int
    sources: Sources
    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mistake:
    """What is wrong with a declaration, or with a kernel where there are no keys; the text is ready to be shown."""

    message: str
    keys: tuple[str, ...] = ()


class DeclarationError(UsageError):
    """A mistake about a key of a kernel's declaration."""

    def __init__(self, message: str, *keys: str):
        super().__init__(message)
        self.keys = keys


def serve(connection: Connection, variants: Sequence[Variant], root: Path, environment: Mapping[str, str]) -> None:
    """Compile all, which have one source, and send the outcome of each as it is there. The environment is that of the
    build: the process comes of one that may be older. Ctrl-C ends it, and the ptxas that it waits for. Of a build that
    was killed it ends without a word, with the next outcome.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(root)
    with suppress(BrokenPipeError):
        for variant in variants:
            connection.send(outcome_of(variant, root))
    connection.close()


def outcome_of(variant: Variant, root: Path) -> Compiled | Mistake:
    """What becomes of a variant; the current folder is the project's."""
    try:
        with warnings.catch_warnings(record=True) as found:
            compiled = compile_variant(variant, root)
        texts = (warning_text(one.message, one.filename, one.lineno) for one in found)
        return replace(compiled, warnings=tuple(texts))
    except DeclarationError as error:
        return Mistake(error.message, error.keys)
    except DeuteronError as error:
        return Mistake(str(error))
    except (OSError, MemoryError) as error:
        return Mistake(f"error: {of_machine(error)}")


def compile_variant(variant: Variant, root: Path) -> Compiled:
    """Compile a variant; the current folder is the project's. Raises DeuteronError."""
    start = time.perf_counter()
    emitted = _emitted(request_of(variant))
    files: dict[str, str | bytes] = {
        f"kernels/{file.name}": text for file, text in emitted.files.items() if file.suffix != ".json"
    }
    files.update((f"{FOLDER}/{name}", content) for name, content in emitted.raw_files.items())
    sources = sources_of(emitted.dependencies, root)
    return Compiled(emitted.record.to_fields(), files, emitted.code_bytes, sources, time.perf_counter() - start)


def request_of(variant: Variant) -> CompileRequest:
    """What compiles a variant, after all that the declaration says of it has been checked."""
    path = ModuleName(variant.module) if variant.module else Path(variant.source or "")
    signature = _signature(variant, _function(variant, path))
    _check_options(variant)
    flags = {name: value for name, value in variant.options.items() if name in _OWN_FLAGS}
    further = {name: value for name, value in variant.options.items() if name not in _OWN_FLAGS}
    return CompileRequest(
        path,
        variant.name,
        signature,
        variant.grid,
        out_path=Path(variant.stem),
        out_name=variant.function,
        target=variant.target,
        options=further,
        host_parameters=variant.host_parameters,
        is_library=True,
        objects=variant.objects,
        is_checked=variant.is_checked,
        has_lines=variant.has_lines,
        **flags,
    )


def _emitted(request: CompileRequest) -> EmittedKernel:
    """What is wrong with no line of a source is wrong with the kernel's declaration."""
    try:
        return emit_kernel(request)
    except DeuteronError as error:
        if error.location:
            raise
        raise DeclarationError(error.message, "name") from None


def _check_options(variant: Variant) -> None:
    """Raise DeclarationError for an option that the target does not have, or a host parameter that cannot be one."""
    backend = get_backend(select_target(variant.target))
    for name, value in variant.options.items():
        try:
            backend.make_options({name: value})
        except UsageError as error:
            raise DeclarationError(error.message, "options", name) from None
    for name, type in variant.host_parameters.items():
        if type not in HOST_TYPES or not name.isidentifier():
            message = f"host parameter '{name}' is {type!r}: it is a name, and one of {', '.join(HOST_TYPES)}"
            raise DeclarationError(message, "host_parameters", name)


def _function(variant: Variant, path: Path | ModuleName) -> Function:
    try:
        module = load_module(path)
    except UsageError as error:
        if error.location:
            raise
        raise DeclarationError(error.message, "source" if variant.source else "module") from None
    try:
        return kernel_of(module, path, variant.name)
    except UsageError as error:
        raise DeclarationError(error.message, "name") from None


def _signature(variant: Variant, function: Function) -> str:
    """The signature as the command line has it, after each element and the grid have been checked by themselves."""
    params = {param.name: param for param in function.params}
    for group, values in (("types", variant.types), ("constexprs", variant.constexprs)):
        for name in values:
            if name not in params:
                known = f"{suggest(name, params)} It has {', '.join(params)}"
                raise DeclarationError(f"kernel '{variant.name}' has no parameter '{name}'.{known}", group, name)
    texts = [_element(variant, function, param) for param in function.params]
    signature = ", ".join(texts)
    try:
        parsed = parse_signature(signature, function.params, variant.name)
        launchable_grid(variant.grid, grid_scope(parsed, variant.host_parameters))
    except UsageError as error:
        raise DeclarationError(error.message, "grid") from None
    return signature


def _element(variant: Variant, function: Function, param: Parameter) -> str:
    name = param.name
    group, text = _asked(variant, function, param)
    try:
        (argument,) = parse_signature(text, [param], variant.name).params.values()
    except UsageError as error:
        raise DeclarationError(error.message, group, name) from None
    if group == "types" and not isinstance(argument, tuple) and argument.type is None:
        if param.is_constexpr:
            raise DeclarationError(f"'{name}' is a tl.constexpr: give its value under constexprs", group, name)
        raise DeclarationError(f"the type of '{name}' is a text such as \"*fp16:16\", got {text!r}", group, name)
    return text


def _asked(variant: Variant, function: Function, param: Parameter) -> tuple[str, str]:
    """The group of the declaration that a parameter is in, and its element of a signature."""
    name = param.name
    if name in variant.types and name in variant.constexprs:
        raise DeclarationError(f"'{name}' is among the types and the constexprs", "constexprs", name)
    if name in variant.types:
        return "types", variant.types[name]
    if name in variant.constexprs:
        return "constexprs", value_text(variant.constexprs[name])
    default = function.signature.parameters[name].default
    if default is function.signature.empty:
        raise DeclarationError(
            f"nothing is said of parameter '{name}' of kernel '{variant.name}': "
            f"give it {'a value under constexprs' if param.is_constexpr else 'a type under types'}",
            "name",
        )
    return "constexprs", value_text(default)


def value_text(value: Any) -> str:
    """A constexpr's value as an element of a signature: `tl.float16` and `None` are such, other texts are strings."""
    if isinstance(value, str):
        return value if value == "None" or value.startswith("tl.") else repr(value)
    if isinstance(value, list | tuple):
        parts = ", ".join(map(value_text, value))
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    return repr(value)
