"""`parse_body` parses the body of a kernel in generic form."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from deuteron.ir.text import parse_module


@pytest.fixture
def parse_body():
    """parse_body("%x: i32, %t: tensor<4xf32>", '"arith.addi"(%x, %x) : ...') -> verified module."""

    def parse(parameters: str, body: str) -> ModuleOp:
        types = ", ".join(parameter.split(":", 1)[1].strip() for parameter in parameters.split("; ") if parameter)
        return parse_module(f"""
        "builtin.module"() ({{
          "tt.func"() <{{sym_name = "k", function_type = ({types}) -> (), sym_visibility = "public"}}> ({{
          ^bb0({parameters.replace("; ", ", ")}):
            {body}
            "tt.return"() : () -> ()
          }}) : () -> ()
        }}) : () -> ()""")

    return parse
