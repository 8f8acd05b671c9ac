"""The options that say which kernel is compiled and how: those of `deuteron compile` and `deuteron inspect` alike.

@click.command("compile", cls=Command)
@kernel_options
def command(path, kernel_name, signature, num_warps, num_stages, num_ctas, target, options): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deuteron.errors import UsageError

if TYPE_CHECKING:
    from deuteron.aot.load import ModuleName

_OPTIONS = (
    click.option("--module", "-m", help="The kernel's module, as Python imports it, in the place of PATH."),
    click.option("--kernel-name", "-n", help="The kernel to compile; the text of a stage has one."),
    click.option(
        "--signature",
        "-s",
        help="For each parameter a type (with :16 if divisible by 16, :1 if always 1) or a constexpr's value.",
    ),
    click.option("--num-warps", "-w", type=int, default=1, show_default=True, help="A power of two, on GPUs up to 32."),
    click.option("--num-stages", "-ns", type=int, default=3, show_default=True, help="Stages of pipelined loops."),
    click.option("--num-ctas", type=int, default=1, show_default=True, help="CTAs that run a program: 1, 2, 4 or 8."),
    click.option("--target", "-t", help="cpu, cpu:<LLVM CPU name>, cuda:<capability>; default: the machine's own."),
    click.option(
        "--option", "-O", "options", multiple=True, metavar="NAME=VALUE", help="A further option of the target."
    ),
)


def kernel_options(function: Callable) -> Callable:
    """Decorator: gives a command these options."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def source_of(path: Path | None, module: str | None) -> Path | ModuleName:
    """The file, or the module, that was named; raises click.UsageError unless it is one of them with all it needs."""
    from deuteron.aot.load import ModuleName  # deferred: brings LLVM
    from deuteron.aot.text import is_text

    if (path is None) == (module is None):
        raise click.UsageError("name a Python file, or a module with -m", click.get_current_context())
    if path is None or not is_text(path):
        require_options("kernel_name", "signature")
    return path if module is None else ModuleName(module)


def require_options(*names: str) -> None:
    """The message of a missing option for those of the current command that were not given."""
    context = click.get_current_context()
    for param in context.command.params:
        if param.name in names and context.params[param.name] is None:
            raise click.MissingParameter(ctx=context, param=param)


def named_values(texts: Iterable[str], form: str = "an option is given as NAME=VALUE") -> dict[str, object]:
    """`opt_level=2` as a name and a value: a whole number, True or False, else text. `form`: what is said of others."""
    found: dict[str, object] = {}
    for name, value in (_named_value(text, form) for text in texts):
        if found.setdefault(name, value) != value:
            raise UsageError(f"'{name}' is given twice, as {found[name]} and as {value}: leave one of them out")
    return found


def _named_value(text: str, form: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{form}, got '{text}'")
    known = {"True": True, "true": True, "False": False, "false": False, "None": None}
    return name.strip(), int(value) if value.strip().isdigit() else known.get(value.strip(), value.strip())
