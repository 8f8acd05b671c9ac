"""What all commands share: an error of Deuteron is one message on stderr and exit status 1, never a traceback; a
warning is a message too.

@click.command("link", cls=Command)
def command(...): ...
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import click

from deuteron.errors import DeuteronError
from deuteron.warning_text import warning_text


class Command(click.Command):
    """A command whose DeuteronErrors and warnings are shown as messages, a warning once."""

    def invoke(self, ctx: click.Context) -> Any:
        shown: set[str] = set()
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show, shown)
            try:
                return super().invoke(ctx)
            except DeuteronError as error:
                click.echo(str(error) if error.location else f"error: {error}", err=True)
                ctx.exit(1)


def _show(
    shown: set[str], message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    """What `warnings` calls with a warning; of that which processes and variants have in common one line is enough."""
    text = warning_text(message, filename, lineno)
    if text not in shown:
        shown.add(text)
        click.echo(f"warning: {text}", err=True)
