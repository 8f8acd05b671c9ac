"""What a wrong kernel, launch or command is told: the exact text, one case each, from the tables in `cases/`.

    ## arange that is not a power of two
    y = tl.arange(0, 100)
    ---
    k.py:4:9: CompilationError: ...

A case without a kernel is the body of `kernel(x, n, BLOCK: tl.constexpr)`, which is launched with an array and 5.
Others are programs, that may `compile(target)` or call the `command` line. What changed is written anew, to be read, by

    python -m pytest tests/errors --update
"""

from __future__ import annotations

import contextlib
import io
import linecache
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import deuteron as triton
import deuteron.language as tl
from deuteron.errors import DeuteronError, InternalError
from deuteron.tools.main import main

CASES = Path(__file__).parent / "cases"
ANSWER = "---"
WHOLE = ("triton.", "compile(", "command(", "from deuteron", "# in Python")
KERNEL = "@triton.jit\ndef kernel(x, n, BLOCK: tl.constexpr):\n{}\nkernel[(1,)](x, 5, 16)\n"
SIGNATURE = {"p": "*fp32", "n": "i32"}
PLAIN = "def kernel(p, n): tl.store(p, n)"


class Case(NamedTuple):
    """One program, and what it is told."""

    file: Path
    title: str
    program: str
    answer: str


def cases_of(file: Path) -> Iterator[Case]:
    for part in file.read_text().split("## ")[1:]:
        title, _, text = part.partition("\n")
        program, _, answer = text.partition(f"\n{ANSWER}\n")
        yield Case(file, title, program.strip("\n"), answer.strip("\n"))


def all_cases() -> list:
    return [
        pytest.param(case, id=f"{file.stem}: {case.title}")
        for file in sorted(CASES.glob("*.txt"))
        for case in cases_of(file)
    ]


def _kernel(body: str) -> str:
    return KERNEL.format("\n".join(f"    {line}" for line in body.splitlines()))


class Program:
    """Runs the program of a case in a folder, as its user does."""

    def __init__(self, folder: Path):
        self._folder = folder

    def run(self, case: Case) -> str:
        """What it is told."""
        is_whole = any(word in case.program for word in WHOLE)
        names = {"triton": triton, "tl": tl, "np": np, "x": np.zeros(64, np.float32), "__name__": "k"}
        names |= {"compile": self._compile, "command": self._command}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self._exec("k.py", case.program if is_whole else _kernel(case.program), names)
        except DeuteronError as error:
            said = f"{type(error).__name__}: {error}"
            assert not isinstance(error, InternalError), said
            return self._short(said)
        return pytest.fail("it went well")

    def _short(self, text: str) -> str:
        return text.replace(f"{self._folder}/", "").replace(str(self._folder), ".")

    def _exec(self, file: str, text: str, names: dict[str, Any]) -> None:
        path = self._folder / file
        path.write_text(text)
        linecache.checkcache(str(path))
        exec(compile(text, str(path), "exec"), names)

    def _compile(
        self, target: str, signature: Any = SIGNATURE, source: str = PLAIN, options: Any = None, **given: Any
    ) -> None:
        names: dict[str, Any] = {"triton": triton, "tl": tl}
        self._exec("compiled.py", f"\n@triton.jit\n{source}\n", names)
        triton.compile(triton.ASTSource(names["kernel"], signature, **given), target=target, options=options)

    def _command(self, signature: str, *options: str, source: str = "", file: str = "compiled.py") -> None:
        path = self._folder / file
        if file == "compiled.py":
            path.write_text(source or f"import triton\nimport triton.language as tl\n@triton.jit\n{PLAIN}\n")
        out = [] if "-o" in options else ["-o", str(self._folder / "out")]
        name = [] if "-n" in options else ["-n", "kernel"]
        target = [*([] if "-t" in options else ["-t", "cpu"]), *([] if "-g" in options else ["-g", "1"])]
        result = CliRunner().invoke(main, ["compile", str(path), "-s", signature, *name, *out, *target, *options])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        raise DeuteronError(result.output.strip())


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("case", all_cases())
def test_message(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    monkeypatch.chdir(tmp_path)
    said = Program(tmp_path).run(case)
    if request.config.getoption("update", default=False):
        replace_answer(case, said)
    else:
        assert said == case.answer


def replace_answer(case: Case, said: str) -> None:
    text = case.file.read_text()
    parts = text.split("## ")
    index = next(i for i, part in enumerate(parts) if part.partition("\n")[0] == case.title)
    parts[index] = f"{case.title}\n{case.program}\n{ANSWER}\n{said}\n\n"
    case.file.write_text("## ".join(parts).rstrip("\n") + "\n")
