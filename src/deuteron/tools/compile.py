"""`deuteron compile`: compiles a kernel of a Python file into C. Also `python -m deuteron.tools.compile`.

    deuteron compile attention.py -n fmha_kernel -s "*fp16:16, *fp32, i32, 1, 64" -g "cdiv(n, 64), heads" -o aot/fmha

The flags are those of Triton's compile.py.
"""

from __future__ import annotations

from pathlib import Path

import click

from deuteron.errors import UsageError
from deuteron.tools.command import Command


@click.command("compile", cls=Command)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--kernel-name", "-n", required=True, help="The kernel to compile.")
@click.option(
    "--signature",
    "-s",
    required=True,
    help="A type (with :16 where divisible by 16, :1 where always 1) or a constexpr's value for each parameter.",
)
@click.option("--grid", "-g", required=True, help="One to three parts: 'cdiv(n, BLOCK), heads'.")
@click.option("--out-path", "-o", type=click.Path(path_type=Path), help="Where to write, less the hash and the suffix.")
@click.option("--out-name", "-on", help="What the C functions are called; default: the kernel's name.")
@click.option("--num-warps", "-w", type=int, default=1, show_default=True, help="A power of two from 1 to 32.")
@click.option("--num-stages", "-ns", type=int, default=3, show_default=True, help="Stages of pipelined loops.")
@click.option("--target", "-t", help="cpu, cpu:<LLVM CPU name>, cpu:native; default: the machine's own.")
@click.option("--option", "-O", "options", multiple=True, metavar="NAME=VALUE", help="A further option of the target.")
def command(path: Path, options: tuple[str, ...], **request: object) -> None:
    """Compile kernel KERNEL_NAME of the Python file PATH into C.

    Writes a .c, a .h and a .json, whose names say the signature; `deuteron link` makes one function of several.
    """
    from deuteron.aot.compile import CompileRequest, compile_kernel  # deferred: brings LLVM

    emitted = compile_kernel(CompileRequest(path, options=dict(map(_option, options)), **request))
    if request["target"] is None:
        click.echo(f"target: {emitted.target} (give another one with -t)", err=True)
    for file in emitted.files:
        click.echo(f"wrote {file}", err=True)


def _option(text: str) -> tuple[str, object]:
    """`opt_level=2` as a name and a value: a whole number, True or False, else text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"an option is given as NAME=VALUE, got '{text}'")
    known = {"True": True, "true": True, "False": False, "false": False, "None": None}
    return name.strip(), int(value) if value.strip().isdigit() else known.get(value.strip(), value.strip())


if __name__ == "__main__":
    command()
