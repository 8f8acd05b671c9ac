"""What the commands say of bad input: one message on stderr, exit status 1, nothing written, never a traceback."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deuteron.aot.metadata import FORMAT, VERSION
from deuteron.tools.main import main

KERNELS = """
import triton
import triton.language as tl


@triton.jit
def load_tile(x, BLOCK: tl.constexpr):
    return tl.load(x + tl.arange(0, BLOCK))


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    tl.store(y + tl.arange(0, 16), load_tile(x, BLOCK))


@triton.autotune(configs=[triton.Config({"BLOCK": 16})], key=["n"])
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    tl.store(x, undefined_name)


@triton.jit
def shapes(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, 8), tl.arange(0, 16))
"""

FILES = {
    "kernels.py": KERNELS,
    "imports.py": "import nothing_like_this\n",
    "syntax.py": "def f(:\n",
    "exits.py": "import sys\n\nsys.exit(3)\n",
    "kernels.txt": KERNELS,
}

GOOD = {"file": "kernels.py", "-n": "copy", "-s": "*fp32, *fp32, i32, 16", "-g": "1", "-o": "out/copy"}

CASES = {
    "no name": ({"--out-name": ""}, "error: '' cannot be the name of a C function: give another one with --out-name"),
    "launch attribute that is a text": (
        {"-O": "launch_pdl=no"},
        "error: launch_pdl is True or False, got 'no'",
    ),
    "flag that is a text": ({"-O": "many_programs=no"}, "error: many_programs is True or False, got 'no'"),
    "depfile that is a folder": ({"--depfile": "."}, "error: cannot write '.': it is a folder"),
    "depfile": (
        {"--depfile-target": "copy.c"},
        "error: --depfile-target says what a depfile has for its target: name the file with --depfile",
    ),
    "kernel name": (
        {"-n": "nope"},
        "error: 'kernels.py' has no kernel 'nope' (a function decorated with @jit): it has "
        "copy, load_tile, shapes, tuned",
    ),
    "too few": (
        {"-s": "*fp32, i32"},
        """\
--signature:1:10: error: the signature has 2 elements, kernel 'copy' has 4 parameters: \
nothing is given for 'n', 'BLOCK'
    *fp32, i32
             ^""",
    ),
    "too many": (
        {"-s": "*fp32, *fp32, i32, 16, 3"},
        """\
--signature:1:24: error: the signature has 5 elements, kernel 'copy' has 4 parameters (x, y, n, BLOCK): \
this is one too many
    *fp32, *fp32, i32, 16, 3
                           ^""",
    ),
    "hint": (
        {"-s": "*fp32:4, *fp32, i32, 16"},
        """\
--signature:1:1: error: parameter 'x': the hint is '4', and only :16 (divisible by 16) and :1 (always 1) are known
    *fp32:4, *fp32, i32, 16
    ^~~~~~~""",
    ),
    "no file": ({"file": "none.py"}, "error: the file 'none.py' does not exist"),
    "folder": ({"file": "."}, "error: '.' is not a file"),
    "not Python": ({"file": "kernels.txt"}, "error: 'kernels.txt' is not a Python file: its name must end in .py"),
    "import": (
        {"file": "imports.py"},
        """\
FOLDER/imports.py:1:1: error: cannot import 'imports.py': ModuleNotFoundError: No module named 'nothing_like_this'
    import nothing_like_this
    ^~~~~~~~~~~~~~~~~~~~~~~~""",
    ),
    "syntax": (
        {"file": "syntax.py"},
        """\
FOLDER/syntax.py:1:7: error: cannot import 'syntax.py': SyntaxError: invalid syntax
    def f(:
          ^""",
    ),
    "exit": (
        {"file": "exits.py"},
        """\
FOLDER/exits.py:3:1: error: cannot import 'exits.py': SystemExit: 3
    sys.exit(3)
    ^~~~~~~~~~~""",
    ),
    "target": (
        {"-t": "vulkan"},
        "error: unknown target 'vulkan': expected 'cpu', 'cpu:<LLVM CPU name>' or 'cuda:<compute capability>'.",
    ),
    "capability": (
        {"-t": "cuda:75"},
        "error: unknown target 'cuda:75': Deuteron compiles for cuda:80, cuda:86, cuda:89, cuda:90, cuda:100, cuda:120",
    ),
    "warps": ({"-w": "3"}, "error: num_warps must be a power of two from 1 to 1024, got 3"),
    "warps of a GPU": (
        {"-w": "64", "-t": "cuda:90"},
        "error: num_warps must be a power of two from 1 to 32, got 64",
    ),
    "stages": ({"-ns": "-1"}, "error: num_stages must be a whole number, 0 or more, got -1"),
    "blocks": ({"--num-ctas": "3"}, "error: num_ctas must be a power of two from 1 to 8, got 3"),
    "blocks on a GPU without clusters": (
        {"--num-ctas": "2", "-t": "cuda:80"},
        "error: num_ctas=2 makes clusters of 2 CTAs, and cuda:80 launches at most 1 together: say num_ctas=1",
    ),
    "option with a flag": ({"-O": "num_ctas=2"}, "error: -O num_ctas=2: say --num-ctas"),
    "out name": (
        {"--out-name": "a-b"},
        "error: 'a-b' cannot be the name of a C function: give another one with --out-name",
    ),
    "out name that the C library has": (
        {"--out-name": "exp"},
        "error: 'exp' cannot be the name of a C function, as the C library has one: give another one with --out-name",
    ),
    "option": ({"-O": "bogus"}, "error: an option is given as NAME=VALUE, got 'bogus'"),
    "host parameter": ({"--host-parameter": "rows"}, "error: a host parameter is given as NAME=TYPE, got 'rows'"),
    "C type": (
        {"-s": "*fp32, *fp32, fp8e5, 16"},
        "error: parameter 'n': a parameter of type fp8e5 has no type in C: pass it through a pointer, or as fp32",
    ),
    "grid": (
        {"-g": "cdiv(n, BLOK)"},
        """\
--grid:1:9: error: unknown name 'BLOK': the kernel's whole parameters are BLOCK, n
    cdiv(n, BLOK)
            ^~~~""",
    ),
}

# The frontend words these; here it counts that file, line, values and way out reach the command line.
STARTS = {
    "type": (
        {"-s": "*ftp32, *fp32, i32, 16"},
        ["--signature:1:1: error: parameter 'x'", "Did you mean 'fp32'?", "^~~~~~"],
    ),
    "CPU": ({"-t": "cpu:haswel"}, ["error: unknown CPU 'haswel'. Did you mean haswell"]),
    "option name": ({"-O": "bogus=3"}, ["error: unknown option 'bogus': the options are num_warps"]),
    "tile": ({"-s": "*fp32, *fp32, i32, 100"}, ["kernels.py:8:", "power of two", "100", "^~~", "called from", ":13:"]),
    "name": (
        {"-n": "tuned", "-s": "*fp32, i32, 16"},
        ["kernels.py:19:17: error: 'undefined_name' is not defined", "^~~"],
    ),
    "shapes": ({"-n": "shapes", "-s": "*fp32, i32, 16"}, ["kernels.py:24:5: error:", "[8]", "[16]", "^~~"]),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compile_with(changes: dict[str, str]) -> Result:
    options = {**GOOD, **changes}
    file = options.pop("file")
    return CliRunner().invoke(main, ["compile", file, *(text for pair in options.items() for text in pair)])


def check_refused(result: Result, folder: Path) -> None:
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert not (folder / "out").exists()


@pytest.mark.parametrize("changes, message", CASES.values(), ids=CASES)
def test_message(folder: Path, changes: dict[str, str], message: str):
    result = compile_with(changes)
    check_refused(result, folder)
    assert result.stderr.replace(str(folder), "FOLDER") == message + "\n"


@pytest.mark.parametrize("changes, parts", STARTS.values(), ids=STARTS)
def test_message_has(folder: Path, changes: dict[str, str], parts: list[str]):
    result = compile_with(changes)
    check_refused(result, folder)
    assert [part for part in parts if part not in result.stderr] == []


def test_link_refuses(folder: Path):
    result = CliRunner().invoke(main, ["link", "none.h", "-o", "out/linked"])
    check_refused(result, folder)
    assert result.stderr == "error: the header 'none.h' does not exist\n"


def test_link_refuses_the_name_of_a_header_of_c(folder: Path):
    result = CliRunner().invoke(main, ["link", "none.h", "-o", "out/math"])
    check_refused(result, folder)
    assert result.stderr.startswith("error: 'math.h' would be included in the place of <math.h>")


@pytest.mark.parametrize("version", ["", '"version": 0, '])
def test_link_refuses_metadata_of_another_version(folder: Path, version: str):
    (folder / "other.h").write_text("")
    (folder / "other.json").write_text(f'{{{version}"format": "{FORMAT}"}}')
    result = CliRunner().invoke(main, ["link", "other.h", "-o", "out/linked"])
    check_refused(result, folder)
    said = f"has metadata version {0 if version else None}, this Deuteron reads version {VERSION}"
    assert result.stderr == f"error: 'other.json' {said}: compile the kernel again\n"


@pytest.mark.parametrize(
    ("flag", "name", "first", "second"),
    [("-O", "opt_level", "2", "3"), ("--host-parameter", "rows", "i32", "i64")],
)
def test_two_values_of_one_name(folder: Path, flag: str, name: str, first: str, second: str):
    options = [text for pair in GOOD.items() if pair[0] != "file" for text in pair]
    twice = [flag, f"{name}={first}", flag, f"{name}={second}"]
    result = CliRunner().invoke(main, ["compile", GOOD["file"], *options, *twice])
    check_refused(result, folder)
    assert result.stderr == f"error: '{name}' is given twice, as {first} and as {second}: leave one of them out\n"


@pytest.mark.parametrize("out", ["", "out/", ".", "out/.."])
@pytest.mark.parametrize("command", ["compile", "link"])
def test_a_folder_is_no_name_of_files(folder: Path, command: str, out: str):
    arguments = ["kernels.py", "-g", "1"] if command == "compile" else ["none.h"]
    result = CliRunner().invoke(main, [command, *arguments, "-o", out])
    assert result.exit_code == 2
    said = f"'{out}' is no more than a folder: say what its files are called, '{os.path.join(out, 'NAME')}'"
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize("out", ['out/a"b', "a\nb"])
def test_a_name_that_cannot_be_included(folder: Path, out: str):
    result = CliRunner().invoke(main, ["link", "none.h", "-o", out])
    assert result.exit_code == 2 and "cannot be included" in result.stderr


def test_a_missing_flag_is_a_usage_message(folder: Path):
    result = CliRunner().invoke(main, ["compile", "kernels.py", "-g", "1"])
    assert result.exit_code == 2
    assert "Missing option '--kernel-name' / '-n'" in result.stderr
