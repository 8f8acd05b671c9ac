"""Compiles one kernel, of a Python file or of the text of a stage, into C: what `deuteron compile` does.

    emitted = compile_kernel(CompileRequest(Path("add.py"), "add", "*fp32, *fp32, i32, 128", "cdiv(n, BLOCK)"))
    emitted.files       [add.2a9b77f0_012.json, add.2a9b77f0_012.h, add.2a9b77f0_012.c]
    emitted.target      Target("cpu", "x86-64-v3")

What can be wrong with the request is checked before the compile, and files are written after it, all or none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import deuteron
from deuteron.aot import naming
from deuteron.aot.c_types import c_type
from deuteron.aot.emit import kernel_files
from deuteron.aot.grid import grid_scope
from deuteron.aot.grid_code import launchable_grid
from deuteron.aot.load import KernelSource, ModuleName, load_source
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.output import depfile_text, write_files
from deuteron.aot.raw import raw_files
from deuteron.aot.signature import Argument, Signature
from deuteron.aot.symbols import digest_of
from deuteron.aot.targets import asks_for_ptx, c_target, select_target
from deuteron.aot.targets.target import KernelCode
from deuteron.aot.text import is_text, load_text
from deuteron.backend import get_backend
from deuteron.compiler import CompiledKernel
from deuteron.compiler import compile as compile_source
from deuteron.dtypes import INTEGERS
from deuteron.errors import UsageError
from deuteron.language.signature import descriptor_arguments, parse_type, type_text
from deuteron.language.types import tensor_descriptor_type
from deuteron.options import LAUNCH_ATTRIBUTES, Target
from deuteron.settings import BOUNDS
from deuteron.toolchain import toolchain

HOST_TYPES = tuple(type.signature for type in INTEGERS if type.bits > 1)


@dataclass(frozen=True)
class CompileRequest:
    """What to compile, as on the command line: `target` is None for that of the machine; options are the target's. A
    `depfile` is written that says what was read, for `depfile_target` or the files. The text of a stage has its own
    name and signature; those of a kernel in a Python file have to be given. `host_parameters` are whole numbers, by
    name, that the grid needs and the kernel does not take. With `is_library` the functions have the types of a library,
    and the files are called `out_path`. `objects` names the systems that its machine code is made for besides. With
    `is_checked` there is a function too that checks every access, where the target can; with `has_lines` code has line
    tables, where the target can.
    """

    path: Path | ModuleName
    kernel_name: str | None
    signature: str | None
    grid: str
    out_path: Path | None = None
    out_name: str | None = None
    depfile: Path | None = None
    depfile_target: Path | None = None
    num_warps: int = 1
    num_stages: int = 3
    num_ctas: int = 1
    target: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    host_parameters: Mapping[str, str] = field(default_factory=dict)
    is_library: bool = False
    objects: Sequence[str] = ()
    is_checked: bool = False
    has_lines: bool = False


@dataclass(frozen=True)
class EmittedKernel:
    """A kernel as the texts of its files, with its record, its target and the files that it was read from. `raw_files`
    are those of `raw.py`, by their names.
    """

    record: KernelRecord
    files: dict[Path, str]
    raw_files: dict[str, bytes]
    target: Target
    code_bytes: int
    dependencies: tuple[Path, ...]


@dataclass(frozen=True)
class Emitted:
    """The files of a kernel, those of them that have changed, and the target."""

    files: list[Path]
    changed: list[Path]
    target: Target


def compile_kernel(request: CompileRequest) -> Emitted:
    """Compile a kernel and write its files; raises DeuteronError, having written nothing."""
    emitted = emit_kernel(request)
    files, outputs = dict(emitted.files), list(emitted.files)
    if request.depfile is not None:
        made = outputs if request.depfile_target is None else [request.depfile_target]
        files[request.depfile] = depfile_text(made, emitted.dependencies)
    changed = write_files(files)
    return Emitted(outputs, [path for path in outputs if path in changed], emitted.target)


def emit_kernel(request: CompileRequest) -> EmittedKernel:
    """Compile a kernel into the texts of its files; raises DeuteronError."""
    target, kernel = _resolve(request)
    record = plan_kernel(request, kernel, target)
    grid = launchable_grid(request.grid, grid_scope(kernel.signature, request.host_parameters))
    code = KernelCode(record, grid, _file_base(request, record), request.is_library)
    compiled = _compile(request, target, kernel, code.symbol)
    code = code.with_compiled(compiled.asm, compiled.metadata)
    if record.is_checked:
        code = replace(code, checked=_compile(request, target, kernel, code.checked_symbol, check=BOUNDS))
    code_bytes = max(len(text) for text in compiled.asm.values() if isinstance(text, bytes))
    raw = raw_files(code, request.objects)
    return EmittedKernel(code.record, kernel_files(code), raw, target, code_bytes, kernel.dependencies)


def compile_request(request: CompileRequest) -> CompiledKernel:
    """Compile a kernel without writing anything: what `deuteron inspect` shows."""
    target, kernel = _resolve(request)
    return _compile(request, target, kernel, None)


def _resolve(request: CompileRequest) -> tuple[Target, KernelSource]:
    options, target = _launch_options(request), select_target(request.target)
    asked = {name: request.options[name] for name in LAUNCH_ATTRIBUTES if name in request.options}
    get_backend(target).make_options({**options, **asked})  # refused before the kernel's file is read
    return target, _load(request, target)


def _compile(
    request: CompileRequest, target: Target, kernel: KernelSource, symbol: str | None, **checked: str
) -> CompiledKernel:
    further = {name: value for name, value in request.options.items() if name not in LAUNCH_ATTRIBUTES}
    options = {**_lines_option(request, target), **_launch_options(request), **further, **checked}
    return compile_source(kernel.source, target, options, symbol=symbol, is_portable=True)


def _lines_option(request: CompileRequest, target: Target) -> dict[str, bool]:
    known = {option.name for option in dataclasses.fields(get_backend(target).options_class)}
    return {"line_info": True} if request.has_lines and "line_info" in known else {}


def _launch_options(request: CompileRequest) -> dict[str, int]:
    """The options that have flags of their own; raises UsageError where a further option is one of them."""
    if request.options.get("check"):
        raise UsageError(
            f"-O check={request.options['check']}: a C function is not told how large its arrays are. With "
            "DEUTERON_CHECK=bounds there is a second one that is told, and checks"
        )
    if request.options.get("interruptible"):
        raise UsageError(
            "-O interruptible=True: that is for launches from Python; a C program handles signals as it likes"
        )
    options = {name: getattr(request, name) for name in ("num_warps", "num_stages", "num_ctas")}
    for name in options:
        if name in request.options:
            raise UsageError(f"-O {name}={request.options[name]}: say --{name.replace('_', '-')}")
    return options


def _load(request: CompileRequest, target: Target) -> KernelSource:
    if isinstance(request.path, ModuleName) or not is_text(request.path):
        return load_source(request.path, request.kernel_name or "", request.signature or "")
    kernel = load_text(request.path, target)
    if request.signature is not None:
        raise UsageError(f"the text '{request.path}' says the types of its parameters: leave --signature away")
    if request.kernel_name not in (None, kernel.name):
        raise UsageError(f"'{request.path}' has no kernel '{request.kernel_name}': it has {kernel.name}")
    return kernel


def plan_kernel(request: CompileRequest, kernel: KernelSource, target: Target) -> KernelRecord:
    """All that is known of a kernel before it is compiled: its names and what they stand for."""
    signature = kernel.signature
    out_name = kernel.name if request.out_name is None else request.out_name
    naming.check_function_name(out_name)
    extras = (*_extras(request, target), *kernel.extras)
    is_checked = request.is_checked and c_target(target.backend).can_check
    elements = signature.texts
    params = _param_records(signature, request.host_parameters, out_name)
    parts = naming.hash_parts(elements, request.num_warps, request.num_stages, request.num_ctas, extras)
    return KernelRecord(
        kernel=kernel.name,
        out_name=out_name,
        hash=naming.signature_hash(parts),
        suffix=naming.suffix(signature.arguments),
        deuteron=deuteron.__version__,
        source=kernel.source.hash(),
        digest=digest_of(
            [
                *(kernel.source.fingerprint(), *parts, str(target), request.grid.strip(), *toolchain()),
                *(["checked"] if is_checked else []),
            ]
        ),
        target=str(target),
        device_rank=c_target(target.backend).device_rank(target),
        num_warps=request.num_warps,
        num_stages=request.num_stages,
        num_ctas=request.num_ctas,
        extras=extras,
        grid=request.grid.strip(),
        params=params[: -len(request.host_parameters) or None],
        host_params=params[len(params) - len(request.host_parameters) :],
        has_ptx=asks_for_ptx(request.target),
        launch_attributes=tuple(name for name in LAUNCH_ATTRIBUTES if request.options.get(name)),
        is_checked=is_checked,
    )


def _file_base(request: CompileRequest, record: KernelRecord) -> Path:
    if request.is_library and request.out_path is not None:
        return request.out_path
    return naming.file_base(request.out_path or Path(record.out_name), record.hash, record.suffix)


def _extras(request: CompileRequest, target: Target) -> tuple[str, ...]:
    """What was asked for beyond the defaults, as it goes into the hash."""
    options = tuple(f"{name}={value}" for name, value in sorted(request.options.items()))
    host = tuple(f"{name}:{type}" for name, type in request.host_parameters.items())
    asked = () if request.target is None else (f"{target}{'+ptx' if asks_for_ptx(request.target) else ''}",)
    return (*asked, *options, *host)


def _param_records(signature: Signature, host: Mapping[str, str], out_name: str) -> tuple[ParamRecord, ...]:
    """The parameters with their names in C, the host's last; raises UsageError for a type that C cannot take."""
    records = [record for arg in signature.arguments for record in _of_argument(arg)]
    records += [_host_record(name, type, {record.name for record in records}) for name, type in host.items()]
    c_names = naming.parameter_names([record.name for record in records], (*naming.OWN_PARAMETERS, out_name))
    return tuple(replace(record, c_name=name) for record, name in zip(records, c_names, strict=True))


def _host_record(name: str, type: str, taken: Container[str]) -> ParamRecord:
    if type not in HOST_TYPES:
        raise UsageError(f"host parameter '{name}' is {type!r}: it is a whole number, one of {', '.join(HOST_TYPES)}")
    if name in taken or not name.isidentifier():
        what = "is a parameter of the kernel" if name in taken else "is no name"
        raise UsageError(f"host parameter '{name}' {what}: give another name")
    return ParamRecord(name, "", type, None, None)


def _of_argument(arg: Argument) -> list[ParamRecord]:
    """The parameters that a C function has for an argument; their names in C are given later."""
    if arg.is_constexpr:
        return [ParamRecord(arg.name, "", None, None, repr(arg.value))]
    type = parse_type(arg.type)
    if isinstance(type, tensor_descriptor_type):
        parts = descriptor_arguments(arg.name, type, arg.hint or 1)
        return [ParamRecord(part.name, "", type_text(part.type), None, None) for part in parts]
    try:
        c_type(arg.type)
    except UsageError as error:
        raise UsageError(f"parameter '{arg.name}': {error.message}") from None
    return [ParamRecord(arg.name, "", arg.type, arg.hint, None)]
