"""`deuteron opt`: runs passes on the text of IR and prints what becomes of it.

    deuteron opt --passes "pipeline-loads{num-stages=3},allocate-shared" matmul.ttgir
    deuteron opt --passes tile,gpu -t cuda:90 -w 8 --print-after assign-layouts matmul.ttir
    deuteron opt --list

The text is that of a stage, as `deuteron inspect --stage ttir` or DEUTERON_DUMP_DIR give it, or written by hand.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deuteron.compiler.source import read_text
from deuteron.errors import UsageError
from deuteron.tools.command import Command

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

ALL, ASSIGN_LAYOUTS = "all", "assign-layouts"
_CONFIGURATION = ("num_warps", "num_ctas")  # what ttgir is made for


@click.command("opt", cls=Command)
@click.argument("path", default="-")
@click.option("--passes", "-p", default="", help="Passes and pipelines, in order: 'tile,pipeline-loads{num-stages=3}'.")
@click.option("--target", "-t", help="cpu, cuda:<capability>; default: what the text is for, else the machine's own.")
@click.option("--num-warps", "-w", type=int, help="Default: what the text is for, else 4.")
@click.option("--num-stages", "-ns", type=int, help="Default: 3.")
@click.option("--num-ctas", type=int, help="Default: what the text is for, else 1.")
@click.option("--print-before", multiple=True, metavar="PASS|all", help="Print the IR before this pass.")
@click.option("--print-after", multiple=True, metavar="PASS|all", help="Print the IR after this pass.")
@click.option("--disable", multiple=True, metavar="PASS", help="Leave this pass out.")
@click.option("--remarks", is_flag=True, help="Print what each pass has to say of ops.")
@click.option("--verify-each/--no-verify-each", default=True, show_default=True, help="Verify after each pass.")
@click.option("--locations/--no-locations", default=True, show_default=True, help="Print source locations.")
@click.option("--generic", is_flag=True, help="Print MLIR's generic form, which names every operand and property.")
@click.option("--list", "is_list", is_flag=True, help="List the passes and their options.")
def command(path: str, passes: str, is_list: bool, **request: object) -> None:
    """Run passes on the IR in the file PATH (-, the default: standard input) and print the result.

    `tile` and `gpu` are the whole pipelines of the target, `memory` is the end of `gpu`.
    """
    if is_list:
        for line in pass_lines():
            click.echo(line)
        return
    click.echo(run(_read(path), "<stdin>" if path == "-" else path, passes, **request), nl=False)


def _read(path: str) -> str:
    return sys.stdin.read() if path == "-" else read_text(Path(path))


def run(
    text: str,
    file: str,
    passes: str,
    target: str | None = None,
    num_warps: int | None = None,
    num_stages: int | None = None,
    num_ctas: int | None = None,
    print_before: Collection[str] = (),
    print_after: Collection[str] = (),
    disable: Collection[str] = (),
    remarks: bool = False,
    verify_each: bool = True,
    locations: bool = True,
    generic: bool = False,
) -> str:
    """The text of a module after passes; what is printed between them goes to stderr."""
    from deuteron.ir.text import parse_module, print_module  # deferred: all this brings xDSL
    from deuteron.ir.verifier import check_input, verify_ir
    from deuteron.passes import run_passes
    from deuteron.passes.by_name import pass_class

    form = locations, generic
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # so that errors show its lines
    module = parse_module(text, file)
    check_input(module, file)
    given = {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas}
    given = {name: value for name, value in given.items() if value is not None}
    chosen, of_ttgir = _chosen(passes, module, target, given)
    for name in {*print_before, *print_after, *disable} - {ALL}:
        pass_class(name)
    for one in chosen:
        if one.name in disable:
            continue
        if one.name in of_ttgir:
            _check_has_layouts(module, one)
        _show(module, one, "before", print_before, form)
        before = _remark_lines(module)
        run_passes(module, [one], verify=verify_ir if verify_each else _no_verify)
        if remarks:
            _show_lines(one.name, [line for line in _remark_lines(module) if line not in before])
        _show(module, one, "after", print_after, form)
    return print_module(module, *form)


def _chosen(
    passes: str, module: ModuleOp, target: str | None, given: dict[str, int]
) -> tuple[Sequence[ModulePass], Collection[str]]:
    """The passes with these names, configured for a target, and the names of those that take ttgir."""
    from deuteron.backend import get_backend  # deferred: all this brings xDSL
    from deuteron.compiler.driver import resolve_target
    from deuteron.passes.by_name import parse_passes

    known = resolve_target(target or _target_of(module))
    _check_target(module, str(known))
    backend = get_backend(known)
    options = backend.make_options(_agreed(module, given))
    backend.check(known, options)
    pipelines = backend.pipelines(known, options)
    return parse_passes(passes, pipelines, backend.pass_objects(known, options)), _of_ttgir(pipelines)


def _of_ttgir(pipelines: Mapping[str, Sequence[ModulePass]]) -> set[str]:
    """The names of the passes that only come after layouts are assigned."""
    for pipeline in pipelines.values():
        names = [one.name for one in pipeline]
        if ASSIGN_LAYOUTS in names:
            place = names.index(ASSIGN_LAYOUTS)
            return set(names[place + 1 :]) - set(names[:place])
    return set()


def _check_has_layouts(module: ModuleOp, one: ModulePass) -> None:
    if "ttg.num-warps" not in module.attributes:
        raise UsageError(
            f"pass '{one.name}' takes ttgir, and the module does not say its number of warps: run {ASSIGN_LAYOUTS} "
            "before it"
        )


def _no_verify(module: ModuleOp, after: str, ops: Sequence[object]) -> None:
    return None


def _target_of(module: ModuleOp) -> str | None:
    found = module.attributes.get("ttg.target")
    return found.data if found is not None else None


def _check_target(module: ModuleOp, asked: str) -> None:
    made = _target_of(module)
    if made is not None and made != asked:
        raise UsageError(f"the ttgir is for {made}, and {asked} was asked for")


def _agreed(module: ModuleOp, given: dict[str, int]) -> dict[str, int]:
    """What was asked for, and what ttgir is for; raises UsageError where they differ."""
    for name in _CONFIGURATION:
        attribute = module.attributes.get(f"ttg.{name.replace('_', '-')}")
        if attribute is None:
            continue
        made = attribute.value.data
        if given.setdefault(name, made) != made:
            raise UsageError(f"the ttgir is for {name}={made}, and {name}={given[name]} was asked for")
    return given


def _show(module: ModuleOp, one: ModulePass, when: str, wanted: Collection[str], form: tuple[bool, bool]) -> None:
    from deuteron.ir.text import print_module
    from deuteron.passes.by_name import text_of

    if one.name in wanted or ALL in wanted:
        click.echo(f"// {when} {text_of(one)}\n{print_module(module, *form)}", err=True)


def _remark_lines(module: ModuleOp) -> list[str]:
    """`k.py:84:12: not-ahead: it is in a branch`, each once."""
    from deuteron.ir.remarks import remarks_in

    said = (f"{place or '-'}: {remark.kind.value}: {remark.reason}" for place, remark in remarks_in(module))
    return list(dict.fromkeys(said))


def _show_lines(name: str, lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(f"{name}: {line}", err=True)


def pass_lines() -> list[str]:
    """A line for each pass: its name and options, what it does, and whether a compile has to have it."""
    from deuteron.passes.by_name import known_passes

    return [f"{usage(one):<60} {summary(one)}{_needed(one)}" for _, one in sorted(known_passes().items())]


def _needed(one: type[ModulePass]) -> str:
    from deuteron.passes.optimisation import Optimisation

    return "" if issubclass(one, Optimisation) else " (needed)"


def usage(one: type[ModulePass]) -> str:
    """`pipeline-loads{num-stages=int}`"""
    from deuteron.passes.by_name import SCALARS, options_of

    options = " ".join(f"{option.name}={SCALARS[option.type]}" for option in options_of(one))
    return f"{one.name}{{{options}}}" if options else one.name


def summary(one: type[ModulePass]) -> str:
    """The first sentence of its docstring."""
    return " ".join(inspect.getdoc(one).split()).partition(". ")[0].rstrip(".") + "."


if __name__ == "__main__":
    command()
