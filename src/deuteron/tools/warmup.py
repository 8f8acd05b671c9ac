"""`deuteron warmup`: compiles what manifests list, so that the next run compiles nothing.

    DEUTERON_RECORD=manifest.json python train.py        writes it
    deuteron warmup manifest.json                        compiles all of it, several kernels at a time

A manifest that is committed warms the cache of any machine up: of another GPU's kernels where no GPU is, too.
"""

from __future__ import annotations

from pathlib import Path

import click

from deuteron.errors import counted
from deuteron.progress import ProgressBar
from deuteron.tools.command import Command


@click.command("warmup", cls=Command)
@click.argument("manifests", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="MANIFEST...")
@click.option("--processes", "-j", type=click.IntRange(1), help="How many compile at a time; default: one a processor.")
@click.pass_context
def command(ctx: click.Context, manifests: tuple[Path, ...], processes: int | None) -> None:
    """Compile what MANIFESTs list into the cache on disk. Exit status 1: something could not be compiled."""
    from deuteron.warming import warm_up  # deferred: brings the compiler

    with ProgressBar("warmup") as bar:
        warmed = warm_up(manifests, processes, bar.start, bar.advance)
    compiled = counted(warmed.compiled, "kernel")
    click.echo(f"compiled {compiled}, {warmed.cached} were in the cache, {len(warmed.failures)} failed")
    for wanted, error in warmed.failures:
        click.echo(f"{wanted}: {error}", err=True)
    if warmed.failures:
        ctx.exit(1)


if __name__ == "__main__":
    command()
