"""The options that say which kernel is compiled and how: those of `deuteron compile` and `deuteron inspect` alike.

@click.command("compile", cls=Command)
@kernel_options(required=True)
def command(path, kernel_name, signature, num_warps, num_stages, target, options): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from deuteron.errors import UsageError


def kernel_options(required: bool) -> Callable[[Callable], Callable]:
    """Decorator: gives a command these options; `required`: name and signature of the kernel have to be there."""
    options = (
        click.option("--kernel-name", "-n", required=required, help="The kernel to compile."),
        click.option(
            "--signature",
            "-s",
            required=required,
            help="For each parameter a type (with :16 if divisible by 16, :1 if always 1) or a constexpr's value.",
        ),
        click.option("--num-warps", "-w", type=int, default=1, show_default=True, help="A power of two from 1 to 32."),
        click.option("--num-stages", "-ns", type=int, default=3, show_default=True, help="Stages of pipelined loops."),
        click.option("--target", "-t", help="cpu, cpu:<LLVM CPU name>, cuda:<capability>; default: the machine's own."),
        click.option(
            "--option", "-O", "options", multiple=True, metavar="NAME=VALUE", help="A further option of the target."
        ),
    )

    def decorate(function: Callable) -> Callable:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def named_values(texts: Iterable[str]) -> dict[str, object]:
    """`opt_level=2` as a name and a value: a whole number, True or False, else text."""
    return dict(map(_named_value, texts))


def _named_value(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"an option is given as NAME=VALUE, got '{text}'")
    known = {"True": True, "true": True, "False": False, "false": False, "None": None}
    return name.strip(), int(value) if value.strip().isdigit() else known.get(value.strip(), value.strip())
