"""`check` runs passes on a kernel and compares the text with its `CHECK` lines.

    check([Fold()], "%x: i32", '''
        // CHECK-NOT: arith.addi
        // CHECK:     "tt.print"(%x)
        %z = "arith.constant"() <{value = 0 : i32}> : () -> i32
        %r = "arith.addi"(%x, %z) : (i32, i32) -> i32
        use %r : i32''')

`use %r : i32` prints a value, so that it is not dead. Every op is at k.py:1:1 unless it says otherwise.
"""

from __future__ import annotations

import io
import re

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from xdsl.dialects.builtin import ModuleOp

from deuteron.errors import Location
from deuteron.ir.location import is_unknown, to_attribute
from deuteron.ir.text import parse_module, print_module
from deuteron.passes import run_passes

USE = re.compile(r"\buse (%\S+) : (\S+)")
PRINT = r'"tt.print"(\1) <{prefix = " r: ", hex = false, isSigned = array<i32: 1>}> : (\2) -> ()'


def parse_kernel(parameters: str, body: str, functions: str = "") -> ModuleOp:
    types = ", ".join(parameter.split(":", 1)[1].strip() for parameter in parameters.split(", ") if parameter)
    module = parse_module(f"""
    "builtin.module"() ({{
      {functions}
      "tt.func"() <{{sym_name = "k", function_type = ({types}) -> (), sym_visibility = "public"}}> ({{
      ^bb0({parameters}):
        {USE.sub(PRINT, body)}
        "tt.return"() : () -> ()
      }}) : () -> ()
    }}) : () -> ()""")
    for op in module.walk():
        if is_unknown(op.location):
            op.location = to_attribute(Location("k.py", 1, 1))
    return module


def run_filecheck(text: str, checks: str) -> None:
    options = Options("<checks>")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    assert Matcher(options, FInput("<ir>", text), parser).run() == 0, text


@pytest.fixture(name="parse_kernel")
def parse_kernel_fixture():
    """parse_kernel(parameters, body) -> module."""
    return parse_kernel


@pytest.fixture
def check():
    """Run passes on the kernel with these parameters and this body, and compare."""

    def run(passes, parameters: str, body: str, functions: str = "", locations: bool = False) -> ModuleOp:
        module = parse_kernel(parameters, body, functions)
        run_passes(module, passes)
        run_filecheck(print_module(module, locations), body)
        return module

    return run
