"""`deuteron compile`: compiles a kernel into C. Also `python -m deuteron.tools.compile`.

    deuteron compile attention.py -n fmha_kernel -s "*fp16:16, *fp32, i32, 1, 64" -g "cdiv(n, 64), heads" -o aot/fmha
    deuteron compile fmha_kernel.ttir -g "cdiv(n, 64), heads" -o aot/fmha

The flags are those of Triton's compile.py.
"""

from __future__ import annotations

from pathlib import Path

import click

from deuteron.tools.command import Command
from deuteron.tools.kernel_options import kernel_options, named_values, require_options


@click.command("compile", cls=Command)
@click.argument("path", type=click.Path(path_type=Path))
@kernel_options
@click.option("--grid", "-g", required=True, help="One to three parts: 'cdiv(n, BLOCK), heads'.")
@click.option("--out-path", "-o", type=click.Path(path_type=Path), help="Where to write, less the hash and the suffix.")
@click.option("--out-name", "-on", help="What the C functions are called; default: the kernel's name.")
def command(path: Path, options: tuple[str, ...], **request: object) -> None:
    """Compile kernel KERNEL_NAME of the Python file PATH, or the text of a stage in PATH (.ttir, .ttgir), into C.

    Writes a .c, a .h and a .json, whose names say the signature; `deuteron link` makes one function of several.
    """
    from deuteron.aot.compile import CompileRequest, compile_kernel  # deferred: brings LLVM
    from deuteron.aot.text import is_text

    if not is_text(path):
        require_options("kernel_name", "signature")
    emitted = compile_kernel(CompileRequest(path, options=named_values(options), **request))
    if request["target"] is None:
        click.echo(f"target: {emitted.target} (give another one with -t)", err=True)
    for file in emitted.files:
        click.echo(f"wrote {file}", err=True)


if __name__ == "__main__":
    command()
