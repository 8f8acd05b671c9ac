"""The command `deuteron`: build, cache, compile, inspect, link, opt, run, tune, warmup.

deuteron build                           the libraries that deuteron.toml declares
deuteron cache ls                        the compiled kernels on disk
deuteron compile add.py -n add -s "*fp32, *fp32, i32, 128" -g "cdiv(n, BLOCK)" -o aot/add
deuteron inspect add.py -n add -s "*fp32, *fp32, i32, 128"          what became of it
deuteron link aot/add.*.h -o aot/add
deuteron opt --passes tile,gpu -t cuda:90 add.ttir        passes by name
deuteron run bench.py --size 1024        a script that says `import triton`, unmodified
deuteron tune show tuned                 what autotuners have measured
deuteron warmup manifest.json            compiles what DEUTERON_RECORD had a run write down
"""

from __future__ import annotations

import importlib
from pathlib import Path

import click

import deuteron
from deuteron.tools.group import Group

_COMMANDS = {
    "build": "Build the libraries that deuteron.toml declares.",
    "cache": "List, measure, clear, export and import the compiled kernels on disk.",
    "compile": "Compile a kernel into C.",
    "inspect": "Show what becomes of a kernel.",
    "link": "Link compiled kernels into one C function.",
    "opt": "Run passes on a text of tile IR.",
    "run": "Run a Python program with `import triton` meaning Deuteron.",
    "tune": "Measure kernels, or show and merge what was measured.",
    "warmup": "Compile what manifests list into the cache on disk.",
}


class Commands(Group):
    """The commands, each imported when it is asked for: not for a list of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return importlib.import_module(f"deuteron.tools.{name}").command if name in _COMMANDS else None

    def summaries(self, ctx: click.Context) -> list[tuple[str, str]]:
        return list(_COMMANDS.items())


def _print_cmake_dir(ctx: click.Context, param: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(Path(deuteron.__file__).parent / "cmake")
        ctx.exit()


@click.command(cls=Commands)
@click.option(
    "--cmake-dir",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_cmake_dir,
    help="Print the folder that find_package(Deuteron) looks for: -DDeuteron_DIR=$(deuteron --cmake-dir).",
)
@click.version_option(deuteron.__version__, prog_name="deuteron")
def main() -> None:
    """Compile kernels of the Triton tile language ahead of time into C, look into them, or run them."""


if __name__ == "__main__":
    main()
