"""Kernels written as IR, for tests of passes and analyses.

    module = parse_kernel("%n: i32", '''
        %r = "arith.addi"(%n, %n) : (i32, i32) -> i32
        use %r : i32''')

`use %r : i32` prints a value, so that it is not dead. Every op is at its place in the text unless it says otherwise.
"""

from __future__ import annotations

import io
import re

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from deuteron.compiler import CompiledKernel
from deuteron.ir.text import parse_module, print_module

USE = re.compile(r"\buse (%\S+) : (\S+)")
PRINT = r'"tt.print"(\1) <{prefix = " r: ", hex = false, isSigned = array<i32: 1>}> : (\2) -> ()'


def parse_kernel(parameters: str, body: str, functions: str = "", aliases: str = "", attributes: str = "") -> ModuleOp:
    """The module of a kernel; `aliases` are definitions of layouts, `attributes` those of the module."""
    types = ", ".join(parameter.split(":", 1)[1].strip() for parameter in parameters.split(", ") if parameter)
    return parse_module(f"""
    {aliases}
    "builtin.module"() ({{
      {functions}
      "tt.func"() <{{sym_name = "k", function_type = ({types}) -> (), sym_visibility = "public"}}> ({{
      ^bb0({parameters}):
        {USE.sub(PRINT, body)}
        "tt.return"() : () -> ()
      }}) : () -> ()
    }}) {attributes} : () -> ()""")


def generic_text(module: ModuleOp, locations: bool = True) -> str:
    """The module in MLIR's generic form, which names every operand, property and type."""
    return print_module(module, locations, generic=True)


def generic_asm(kernel: CompiledKernel, stage: str) -> str:
    """The text of a stage of tile IR in the generic form."""
    return generic_text(parse_module(kernel.asm[stage]))


def value_named(module: ModuleOp, name: str) -> SSAValue:
    """The value with that name, an argument or a result."""
    for op in module.walk():
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*arguments, *op.results):
            if value.name_hint == name:
                return value
    raise KeyError(name)


def run_filecheck(text: str, checks: str) -> None:
    """Compare a text with CHECK lines."""
    options = Options("<checks>")
    parser = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
    assert Matcher(options, FInput("<ir>", text), parser).run() == 0, text
