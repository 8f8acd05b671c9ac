"""`deuteron compile`: compiles a kernel into C. Also `python -m deuteron.tools.compile`.

    deuteron compile attention.py -n fmha_kernel -s "*fp16:16, *fp32, i32, 1, 64" -g "cdiv(n, 64), heads" -o aot/fmha
    deuteron compile -m ops.attention -n fmha_kernel -s "..." -g "cdiv(n, 64), heads" --depfile aot/fmha.d
    deuteron compile fmha_kernel.ttir -g "cdiv(n, 64), heads" -o aot/fmha

The flags are those of Triton's compile.py.
"""

from __future__ import annotations

from pathlib import Path

import click

from deuteron.settings import BOUNDS, settings
from deuteron.tools.command import Command, OutPath, check_depfile
from deuteron.tools.kernel_options import kernel_options, named_values, source_of


@click.command("compile", cls=Command)
@click.argument("path", type=click.Path(path_type=Path), required=False)
@kernel_options
@click.option("--grid", "-g", required=True, help="One to three parts: 'cdiv(n, BLOCK), heads'.")
@click.option("--out-path", "-o", type=OutPath(), help="Where to write, less the hash and the suffix.")
@click.option("--out-name", "-on", help="What the C functions are called; default: the kernel's name.")
@click.option(
    "--host-parameter",
    "host_parameters",
    multiple=True,
    metavar="NAME=TYPE",
    help="A value for the grid alone: 'n=i32'.",
)
@click.option("--depfile", type=click.Path(path_type=Path), help="Write what was read, for Make, Ninja and CMake.")
@click.option(
    "--depfile-target", type=click.Path(path_type=Path), help="What the depfile says is made; default: the files."
)
def command(
    path: Path | None, module: str | None, options: tuple[str, ...], host_parameters: tuple[str, ...], **request: object
) -> None:
    """Compile kernel KERNEL_NAME of the file PATH or of a module (-m), or the text of a stage (.ttir, .ttgir), into C.

    Writes a .c, a .h and a .json, whose names say the signature; `deuteron link` makes one function of several. With
    DEUTERON_CHECK=bounds kernels for the CPU have a second function, which checks every access.
    """
    check_depfile(request["depfile"], request["depfile_target"])
    from deuteron.aot.compile import CompileRequest, compile_kernel  # deferred: brings LLVM

    emitted = compile_kernel(
        CompileRequest(
            source_of(path, module),
            options=named_values(options),
            host_parameters=named_values(host_parameters, "a host parameter is given as NAME=TYPE"),
            is_checked=settings.check == BOUNDS,
            has_lines=settings.line_info,
            **request,
        )
    )
    if request["target"] is None:
        click.echo(f"target: {emitted.target} (give another one with -t)", err=True)
    for file in emitted.files:
        click.echo(f"{'wrote' if file in emitted.changed else 'unchanged'} {file}", err=True)


if __name__ == "__main__":
    command()
