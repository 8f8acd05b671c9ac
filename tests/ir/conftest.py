"""`parse_body` parses the body of a kernel in generic form; `nested_loops`: a loop, one in it, and a branch in that."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from deuteron.ir.text import parse_module

NESTED = """
tt.func public @k(%n: i32, %c: i1) {
  %0 = arith.constant 0 : i32
  %1:2 = scf.for %i = %0 to %n step %n iter_args(%s = %n, %t = %0) -> (i32, i32) : i32 {
    %2 = scf.while (%w = %t) : (i32) -> i32 {
      %y = arith.muli %w, %n : i32
      scf.condition(%c) %y : i32
    } do {
    ^bb0(%b: i32):
      %3 = scf.if %c -> (i32) {
        %x = arith.addi %i, %b : i32
        scf.yield %x : i32
      } else {
        scf.yield %n : i32
      }
      scf.yield %3 : i32
    }
    scf.yield %s, %2 : i32, i32
  }
  tt.return
}
"""


@pytest.fixture
def nested_loops() -> ModuleOp:
    return parse_module(NESTED)


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
