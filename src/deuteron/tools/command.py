"""What all commands share: an error of Deuteron, and what the system refuses, is one message on stderr and exit status
1, never a traceback; a warning is a message too; Ctrl-C is exit status 130, as a shell has it. An option that takes one
value is given once. Where a command ends, the system takes its memory back, and nobody looks for garbage in it.

@click.command("link", cls=Command)
def command(...): ...
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click

from deuteron.errors import DeuteronError, UsageError, of_machine
from deuteron.settings import settings
from deuteron.tools.group import saying_interrupted
from deuteron.warning_text import warning_text


class Command(click.Command):
    """A command whose DeuteronErrors and warnings are shown as messages, a warning once.

    `is_left_at_once`: Python ends without a look for garbage at all objects that there are.
    """

    is_left_at_once = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _check_given_once(ctx, self.make_parser(ctx).parse_args(list(args))[2])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if self.is_left_at_once:
            atexit.register(gc.freeze)
        _open_streams()
        shown: set[str] = set()
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show, shown)
            try:
                with saying_interrupted(ctx):
                    _check_folder()
                    return super().invoke(ctx)
            except DeuteronError as error:
                if settings.front_end_debugging:
                    traceback.print_exception(error)
                    ctx.exit(1)
                click.echo(str(error) if error.location else f"error: {error}", err=True)
                ctx.exit(1)
            except BrokenPipeError:
                raise  # whoever reads the output has seen enough
            except (OSError, MemoryError) as error:
                click.echo(f"error: {of_machine(error)}", err=True)
                ctx.exit(1)


class OutPath(click.Path):
    """What files are called that a command writes, less their endings: no folder alone, and no name that an `#include`
    cannot say."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name = os.path.basename(value)
        if not {'"', "\n"}.isdisjoint(name):
            self.fail(f"{name!r} cannot be included: a name of C files has no quotes and is one line", param, ctx)
        if name in ("", os.curdir, os.pardir):
            example = os.path.join(value, "NAME")
            self.fail(f"'{value}' is no more than a folder: say what its files are called, '{example}'", param, ctx)
        return super().convert(value, param, ctx)


def check_depfile(depfile: object, target: object) -> None:
    """What a depfile is to say is made is of no use without one."""
    if target is not None and depfile is None:
        raise UsageError("--depfile-target says what a depfile has for its target: name the file with --depfile")


def _check_given_once(ctx: click.Context, given: Iterable[click.Parameter]) -> None:
    """Of an option that takes one value the last one would hold, and nobody would hear of the others."""
    for param, count in Counter(given).items():
        if count > 1 and isinstance(param, click.Option) and not (param.multiple or param.is_flag or param.count):
            raise click.UsageError(f"{param.get_error_hint(ctx)} takes one value, and is given {count} times.", ctx)


def _open_streams() -> None:
    """Of a shell's `>&-`, and of services, a process has no output, in the place of which Python has None."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  until the process ends


def _check_folder() -> None:
    try:
        os.getcwd()
    except OSError:
        raise UsageError("the folder that this was started in is there no more: change to one that is") from None


def _show(
    shown: set[str], message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object
) -> None:
    """What `warnings` calls with a warning; of that which processes and variants have in common one line is enough."""
    text = warning_text(message, filename, lineno)
    if text not in shown:
        shown.add(text)
        click.echo(f"warning: {text}", err=True)
