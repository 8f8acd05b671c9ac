"""`deuteron link`: links compiled kernels into functions that choose among them. Also `python -m deuteron.tools.link`.

    deuteron link aot/fp16/*.h -o aot/fmha_kernel_fp16

The flags are those of Triton's link.py.
"""

from __future__ import annotations

from pathlib import Path

import click

from deuteron.tools.command import Command, OutPath


@click.command("link", cls=Command)
@click.argument("headers", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", "-o", "out_path", required=True, type=OutPath(), help="Where to write, without .c, .h.")
@click.option(
    "--tuned",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A file of timings by which NAME_default chooses; several may be given.",
)
def command(headers: tuple[Path, ...], out_path: Path, tuned: tuple[Path, ...]) -> None:
    """Link the kernels of HEADERS, which `deuteron compile` wrote with their .json beside them.

    Writes a .c and a .h with the functions NAME, NAME_default, NAME_get_num_algos, NAME_select, NAME_supports,
    load_NAME and unload_NAME.
    """
    from deuteron.aot.link import link_kernels  # deferred: for the start-up time of other commands

    linked = link_kernels(headers, out_path, tuned)
    for file in linked.files:
        click.echo(f"{'wrote' if file in linked.changed else 'unchanged'} {file}", err=True)


if __name__ == "__main__":
    command()
