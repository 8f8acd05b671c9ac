"""Two ways to test the frontend: what a kernel becomes, and what is said of a kernel that is wrong.

    def test_add(check_ir):                             def test_name(check_error):
        @jit                                                check_error(
        def kernel(n):                                          '''
            # CHECK: %x = "arith.addi"(%n, %n)                  @jit
            x = n + n                                           def kernel(n): ...
        check_ir(kernel, "i32")                                 ''', "k.py:3:9: error: ...")

`check_ir` verifies the IR, locations included, and matches the CHECK comments with filecheck.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from ir_text import generic_text
from xdsl.dialects.builtin import ModuleOp

from deuteron.errors import DeuteronError
from deuteron.frontend import lower_function
from deuteron.ir.verifier import verify_ttir
from deuteron.language.functions.function import Function

HEADER = "import deuteron.language as tl; from deuteron.language.functions.function import Function as jit\n"


def lower_kernel(fn: Function, types: str = "", **constexprs: object) -> ModuleOp:
    """The verified IR of a kernel; `types` are those of the parameters that are not in `constexprs`, in order."""
    names = [param.name for param in fn.params if param.name not in constexprs and not param.is_constexpr]
    module = lower_function(fn, dict(zip(names, types.split(), strict=True)), constexprs, {})
    verify_ttir(module, "the frontend")
    return module


def match_checks(text: str, checks: str) -> None:
    """Match filecheck's comments in `checks` against the text."""
    options = Options("kernel")
    matcher = Matcher(options, FInput("ir", text), Parser(options, StringIO(checks), *pattern_for_opts(options)))
    assert matcher.run() == 0, f"{checks}\n{text}"


@pytest.fixture
def lower() -> Callable[..., ModuleOp]:
    return lower_kernel


@pytest.fixture
def check_ir() -> Callable[..., None]:
    """check_ir(kernel, types, **constexprs): the IR matches the CHECK comments in the kernel's source."""

    def check(fn: Function, types: str = "", **constexprs: object) -> None:
        match_checks(generic_text(lower_kernel(fn, types, **constexprs), locations=False), fn.src)

    return check


@pytest.fixture
def load_source(tmp_path: Path) -> Callable[[str], ModuleType]:
    """load_source(text): the text as a module `k.py`; its first line imports `tl` and `jit`."""

    def load(text: str) -> ModuleType:
        path = tmp_path / "k.py"
        path.write_text(HEADER + text.lstrip("\n"))
        spec = importlib.util.spec_from_file_location("k", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def check_error(load_source: Callable[[str], ModuleType], tmp_path: Path) -> Callable[..., None]:
    """check_error(text, expected, types="i32", **constexprs): compiling `kernel` in the text fails with just this."""

    def check(text: str, expected: str, types: str = "i32", **constexprs: object) -> None:
        kernel = load_source(dedent(text)).kernel
        with pytest.raises(DeuteronError) as raised:
            lower_kernel(kernel, types, **constexprs)
        assert str(raised.value).replace(f"{tmp_path}/", "") == dedent(expected).strip()

    return check
