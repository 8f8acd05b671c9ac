"""What groups of commands share: a word that is no command is an error, which names those that there are; Ctrl-C.

@click.group("cache", cls=Group)
def command(): ...

deuteron cache list        No such command 'list'. Did you mean 'ls'? There are clear, export, import, ls, size.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from deuteron.errors import suggest

_SENTENCE = 200  # characters of a command's first sentence, which click would cut off at 45

INTERRUPTED = 128 + signal.SIGINT  # the exit status by which shells know of Ctrl-C


@contextmanager
def saying_interrupted(ctx: click.Context) -> Iterator[None]:
    """Ctrl-C is a word and an exit status of its own."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        ctx.exit(INTERRUPTED)


class Group(click.Group):
    """Commands, all of which are named where a word is none of them."""

    def invoke(self, ctx: click.Context) -> Any:
        """Ctrl-C may come before there is a command: its module takes 0.3 s to import."""
        with saying_interrupted(ctx):
            return super().invoke(ctx)

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        """What help says of each command: the first sentence of its own."""
        return [(name, command.get_short_help_str(_SENTENCE)) for name, command in sorted(self.commands.items())]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(self.summaries(ctx))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        is_unknown = args[0] not in known and not args[0].startswith("-")
        if is_unknown and not ctx.resilient_parsing:
            ctx.fail(f"No such command '{args[0]}'.{suggest(args[0], known)} There are {', '.join(known)}.")
        return super().resolve_command(ctx, args)
