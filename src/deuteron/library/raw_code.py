"""What a library has for programs that call its machine code themselves: archives, a header and JSON, in `raw/`.

    raw_library("norms", entries, read)
    {"raw/norms_raw.h": "...", "raw/norms_raw.json": "...", "raw/linux-x86_64/libnorms_raw.a": b"!<arch>...", ...}

`read` gives the content of a kernel's file. The archives are written without an archiver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

import deuteron
from deuteron.aot.apart_code import apart_text
from deuteron.aot.archive import archive
from deuteron.aot.c_types import c_type
from deuteron.aot.dispatch import description_of
from deuteron.aot.emit import header_guard
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.symbols import symbol
from deuteron.aot.templates import comment_lines, comment_text, render
from deuteron.library.manifest import Entry

FORMAT, VERSION = "deuteron-raw", 1
FOLDER = "raw"


def raw_library(name: str, entries: Sequence[Entry], read: Callable[[str], bytes]) -> dict[str, str | bytes]:
    """The library's own files, none where no kernel has such files."""
    found = [(entry, _raw_names(entry)) for entry in entries]
    if not any(names for _, names in found):
        return {}
    return {
        f"{FOLDER}/{name}_raw.h": _header(name, [entry.record for entry, _ in found]),
        f"{FOLDER}/{name}_raw.json": _json(name, found),
        **dict(_archives(name, found, read)),
    }


def _raw_names(entry: Entry) -> list[str]:
    return [name for name in entry.files if name.startswith(f"{FOLDER}/")]


def kernel_symbol(record: KernelRecord) -> str:
    return symbol(record.digest, f"kernel_{record.function}")


def _archives(
    name: str, found: Sequence[tuple[Entry, list[str]]], read: Callable[[str], bytes]
) -> Iterator[tuple[str, bytes]]:
    folders: dict[str, dict[str, str]] = {}
    for entry, names in found:
        for path in map(PurePosixPath, names):
            if path.suffix == ".o":
                folders.setdefault(path.parent.as_posix(), {})[path.name] = kernel_symbol(entry.record)
    for folder, symbols in folders.items():
        system = PurePosixPath(folder).name.partition("-")[0]
        prefix, kind = ("_", "bsd") if system == "macos" else ("", "gnu")
        file = f"{name}_raw.lib" if system == "windows" else f"lib{name}_raw.a"
        objects = {member: read(f"{folder}/{member}") for member in symbols}
        yield f"{folder}/{file}", archive(objects, {member: [prefix + text] for member, text in symbols.items()}, kind)


def _header(name: str, records: Sequence[KernelRecord]) -> str:
    kernels = [record for record in records if record.backend == "cpu"]
    return render(
        "raw.h",
        name=name,
        guard=header_guard(f"RAW_{name}"),
        kernels="\n".join(map(_declaration, kernels)),
    )


def _declaration(record: KernelRecord) -> str:
    lines = [f"   args[{i}]  {comment_text(_pointer(param))}" for i, param in enumerate(record.arguments)]
    described = comment_text(f"{record.out_name} ({description_of([record])}) for {record.target}")
    sentence = f"{described}. Grid: {comment_text(record.grid)}. Scratch: {record.scratch_bytes} bytes."
    return (
        f"/* {sentence}{''.join(map(comment_lines, _demands(record)))}\n"
        + "".join(f"{line}\n" for line in lines)
        + f"   args[{len(lines)}]  deuteron_raw_control * */\n"
        f"DEUTERON_RAW_KERNEL({kernel_symbol(record)})\n"
    )


def _demands(record: KernelRecord) -> Iterator[str]:
    """What its caller has to see to, besides what every kernel demands."""
    yield apart_text([record])
    if record.waiting_line:
        yield "Its programs wait for one another: each has to begin, in a call of its own, while others run."
    if record.uses_tiles:
        yield "It uses the tiles of AMX, for which a process asks Linux first."


def _pointer(param: ParamRecord) -> str:
    """What points to an argument."""
    hint = f", divisible by {param.hint}" if param.hint else ""
    return f"{'void *' if param.type.startswith('*') else c_type(param.type)} * -> {param.name}: {param.type}{hint}"


def _json(name: str, found: Sequence[tuple[Entry, list[str]]]) -> str:
    kernels = [_fields(entry.record, {file: entry.files[file] for file in names}) for entry, names in found]
    fields = {"format": FORMAT, "version": VERSION, "library": name, "deuteron": deuteron.__version__}
    return json.dumps({**fields, "kernels": kernels}, indent=1) + "\n"


def _fields(record: KernelRecord, files: dict[str, str]) -> dict[str, Any]:
    """What a launch needs to know; files with their SHA-256."""
    known = record.to_fields()
    kept = (
        "target",
        "grid",
        "params",
        "host_params",
        "num_warps",
        "extra_warps",
        "num_ctas",
        "shared",
        "scratch_bytes",
    )
    further = ("tensor_maps", "launch_attributes", "assertions", "written", "apart", "uses_tiles", "resources")
    return {
        "function": record.out_name,
        "algorithm": description_of([record]),
        "symbol": kernel_symbol(record),
        "files": files,
        "waits": record.waiting_line > 0,
        **{name: known[name] for name in (*kept, *further)},
    }
