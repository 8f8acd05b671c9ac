"""The files of one kernel: `.c`, `.h` and `.json`, as texts by their paths.

kernel_files(code)
{Path("aot/add.2a9b77f0_01.json"): "{...", Path("aot/add.2a9b77f0_01.c"): "/* ...", ...}
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from deuteron.aot.apart_code import apart_text
from deuteron.aot.c_types import kernel_declarations
from deuteron.aot.metadata import KernelRecord, ParamRecord
from deuteron.aot.targets import c_target
from deuteron.aot.targets.target import LIBRARY_TYPES, KernelCode
from deuteron.aot.templates import comment_lines, comment_text, render, runtime_source


def kernel_files(code: KernelCode) -> dict[Path, str]:
    """All that is written for a kernel."""
    base = code.file_base
    return {
        base.with_name(f"{base.name}.json"): code.record.to_json(),
        base.with_name(f"{base.name}.h"): kernel_header(code.record, code.is_library),
        base.with_name(f"{base.name}.c"): c_target(code.record.backend).source(code),
    }


def kernel_header(record: KernelRecord, is_library: bool = False) -> str:
    types = LIBRARY_TYPES if is_library else c_target(record.backend).types_files
    return render(
        "kernel.h",
        title=f"kernel {record.function}",
        guard=header_guard(f"{record.function}_{record.digest}"),
        claims=claims([record.function]),
        types=runtime_source(*types),
        kernel=record.kernel,
        signature=comment_text(", ".join(_described(param) for param in (*record.params, *record.host_params))),
        target=record.target,
        grid=comment_text(record.grid),
        function=record.function,
        launch=kernel_declarations(record)[0],
        apart=comment_lines(apart_text([record])),
        maintenance="\n".join(kernel_declarations(record)[1:]),
    )


def header_guard(name: str) -> str:
    return f"DEUTERON_{name}_H"


def claims(names: Iterable[str]) -> str:
    """The lines that refuse a second header of these names, made from other sources, in one unit."""
    return "\n".join(
        f"#ifdef DEUTERON_DECLARES_{name}\n"
        f'#error "another header, made from other sources, declares {name}: include one of them in a file, or, in C++, '
        'the .hpp of libraries; or give one of the kernels another out-name"\n'
        f"#endif\n"
        f"#define DEUTERON_DECLARES_{name}"
        for name in names
    )


def _described(param: ParamRecord) -> str:
    """`x: *fp32:16`, `n: i32` or `BLOCK = 128`."""
    if param.type is None:
        return f"{param.name} = {param.value}"
    return f"{param.name}: {param.type}" + (f":{param.hint}" if param.hint else "")
