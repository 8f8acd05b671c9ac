"""What all commands share: an error of Deuteron is one message on stderr and exit status 1, never a traceback.

@click.command("link", cls=Command)
def command(...): ...
"""

from __future__ import annotations

from typing import Any

import click

from deuteron.errors import DeuteronError


class Command(click.Command):
    """A command whose DeuteronErrors are shown as messages."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except DeuteronError as error:
            click.echo(str(error) if error.location else f"error: {error}", err=True)
            ctx.exit(1)
