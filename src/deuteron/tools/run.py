"""`deuteron run file.py args...`: runs a Python program in which `import triton` is Deuteron.

    deuteron run --interpret softmax.py --size 1000

The program sees what it would see under `python file.py args`: `__main__`, `sys.argv`, its own folder first on
`sys.path`. Its exit code is ours. An error of Deuteron's is shown as such, with the line of the program that led to it;
any other exception with the program's traceback.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType

import click

from deuteron.errors import DeuteronError, UsageError, suggest
from deuteron.tools.command import Command
from deuteron.tools.group import INTERRUPTED
from deuteron.tracebacks import without_ours

PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep


class _Run(Command):
    """Of a program Python finds the garbage when it ends, as of any other."""

    is_left_at_once = False


@click.command("run", cls=_Run, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--interpret", is_flag=True, help="Run kernels in the NumPy interpreter, with every access checked.")
@click.option("--emulate", is_flag=True, help="Compile kernels for a GPU and run their PTX on the CPU, checked.")
@click.argument("file")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(interpret: bool, emulate: bool, file: str, args: tuple[str, ...]) -> None:
    """Run a Python program with `import triton` meaning Deuteron."""
    if interpret and emulate:
        raise click.UsageError("--interpret and --emulate are two ways to run kernels: say one of them")
    if file == "-m":
        raise UsageError("run takes the file of a program, not -m and the name of a module")
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        near = suggest(file, ("--interpret", "--emulate", "--help")) if file.startswith("-") else ""
        raise UsageError(f"cannot read '{file}': {error.strerror}{'.' * bool(near)}{near}") from error
    if interpret:
        os.environ["DEUTERON_INTERPRET"] = "1"
    if emulate:
        os.environ["DEUTERON_EMULATE"] = "1"
    sys.argv = [file, *args]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(file).resolve().parent)
    sys.exit(run_program(source, file))


def run_program(source: bytes, file: str) -> int:
    """Execute a program as `__main__`; returns 1 after an exception, which it shows. SystemExit passes."""
    import deuteron.compat  # noqa: F401  deferred: it changes what `import triton` means

    main = ModuleType("__main__")
    main.__file__ = file
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    try:
        exec(compile(source, file, "exec", dont_inherit=True), vars(main))
    except DeuteronError as error:
        print(f"{_headed(error)}{_origin(error.__traceback__)}", file=sys.stderr)
        return 1
    except (Exception, KeyboardInterrupt) as error:
        error.__traceback__ = _without_ours(error.__traceback__)
        traceback.print_exception(error)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _headed(error: DeuteronError) -> str:
    return str(error) if error.location else f"error: {error}"


def _origin(trace: TracebackType | None) -> str:
    """The last line of the program itself that led to an error."""
    frames = traceback.extract_tb(without_ours(trace))
    return f"\n  at {frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the program on: without the frames that run it."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(PACKAGE):
        trace = trace.tb_next
    return trace


if __name__ == "__main__":
    command()
