"""`deuteron inspect`: the compile report of a kernel, or the text of one of its stages.

    deuteron inspect matmul.py -n matmul_kernel -s "*fp16:16, *fp16:16, ..." -w 8 -t cuda:90
    deuteron inspect matmul.py -n matmul_kernel -s "..." --stage ptx
    deuteron inspect matmul.py -n matmul_kernel -s "..." --html matmul.html     a page: what became of every line
    deuteron inspect ... --html matmul.html --against num_warps=4 --against BLOCK_K=32      two configurations
    deuteron inspect matmul_kernel.ttir -w 8 -t cuda:90
    deuteron inspect aot/matmul.6979ce4b_012.json        the numbers that `deuteron compile` kept

The flags are those of `deuteron compile`, whose others are taken and mean nothing here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deuteron.backend.report import Report
from deuteron.errors import UsageError, not_written
from deuteron.tools.command import Command
from deuteron.tools.kernel_options import kernel_options, named_values, source_of
from deuteron.whole_file import whole_file

if TYPE_CHECKING:
    from deuteron.compiler import CompiledKernel

_OF_CUBIN = ". It would have sass where nvdisasm is, on PATH or in a wheel of NVIDIA's"


@click.command("inspect", cls=Command)
@click.argument("path", type=click.Path(path_type=Path), required=False)
@kernel_options
@click.option("--stage", help="Print the text of this stage instead: ttir, ttgir, llir, ptx, asm, sass ...")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; with --html, what the page shows.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page that shows what became of every line.")
@click.option(
    "--against", multiple=True, metavar="NAME=VALUE", help="Beside it on the page: with this option, constexpr, target."
)
@click.option("--data", type=click.Path(path_type=Path), help="Write what the page shows as JSON; '-': print it.")
@click.option("--grid", "-g", hidden=True)
@click.option("--out-path", "-o", hidden=True)
@click.option("--out-name", "-on", hidden=True)
def command(
    path: Path | None,
    stage: str | None,
    as_json: bool,
    html: Path | None,
    against: tuple[str, ...],
    data: Path | None,
    **request: object,
) -> None:
    """Show what becomes of kernel KERNEL_NAME of the Python file PATH, or of an artefact's .json.

    Registers, spills, shared memory, occupancy, vector widths, instructions, pipelined loads, messages of ptxas.
    """
    has_page = html is not None or data is not None
    _check_shown(stage, as_json, has_page, against)
    if path is not None and path.suffix == ".json":
        if has_page:
            raise UsageError(f"'{path}' has no texts to explore: give the kernel's Python file with -n and -s")
        _show(_report_of_artefact(path, stage), as_json)
        return
    kernel = _compiled(path, **request)
    if has_page:
        _explore(kernel, named_values(against), html, data or (Path("-") if as_json else None))
        return
    if stage is None:
        _show(kernel.report(), as_json)
        return
    if stage not in kernel.asm:
        known = ", ".join(kernel.asm) + (_OF_CUBIN if stage == "sass" and "cubin" in kernel.asm else "")
        raise UsageError(f"kernel '{kernel.name}' has no stage '{stage}' for {kernel.metadata.target}: it has {known}")
    text = kernel.asm[stage]
    click.echo(text, nl=isinstance(text, str) and not text.endswith("\n"))


def _check_shown(stage: str | None, as_json: bool, has_page: bool, against: tuple[str, ...]) -> None:
    """Refuse what would be left away without a word: a text of a stage is shown alone, a second kernel on a page."""
    if stage is not None and (as_json or has_page):
        raise UsageError("--stage prints the text of a stage and nothing else: leave --json, --html and --data away")
    if against and not has_page:
        raise UsageError("--against is of a page: say where to write it, --html PATH, or its data, --data PATH")


def _compiled(path: Path | None, module: str | None, options: tuple[str, ...], **request) -> CompiledKernel:
    from deuteron.aot.compile import CompileRequest, compile_request  # deferred: brings LLVM

    known = {name: value for name, value in request.items() if name not in ("grid", "out_path", "out_name")}
    return compile_request(CompileRequest(source_of(path, module), grid="1", options=named_values(options), **known))


def _explore(kernel: CompiledKernel, against: dict[str, object], html: Path | None, data: Path | None) -> None:
    from deuteron.explorer import explore  # deferred: for the start-up time of other commands
    from deuteron.explorer.variant import variant

    page = explore(kernel, variant(kernel, against) if against else None)
    if html is not None:
        _write(html, page.html)
    if data is not None:
        _write(data, json.dumps(page.exploration.to_dict()) + "\n")


def _write(path: Path, text: str) -> None:
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    try:
        with whole_file(path) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise not_written(path, error) from error


def _report_of_artefact(path: Path, stage: str | None) -> Report:
    from deuteron.aot.metadata import read_record  # deferred: for the start-up time of other commands

    if stage is not None:
        raise UsageError(f"'{path}' has no texts of stages: give the kernel's Python file with -n and -s")
    return read_record(path).report()


def _show(report: Report, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(report.to_dict(), indent=2))
    elif sys.stdout.isatty():
        from rich.console import Console  # deferred: for the start-up time of other commands

        Console().print(report)
    else:
        click.echo(str(report))


if __name__ == "__main__":
    command()
