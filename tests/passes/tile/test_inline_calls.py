"""Calls in textual IR become the callee's body, and locations remember the call."""

from __future__ import annotations

import pytest

from deuteron.errors import IRError
from deuteron.passes.tile.inline_calls import InlineCalls


def function(name: str, body: str) -> str:
    return f"""
      "tt.func"() <{{sym_name = "{name}", function_type = (i32) -> i32, sym_visibility = "private"}}> ({{
      ^bb0(%x: i32):
        {body}
        "tt.return"(%r) : (i32) -> ()
      }}) : () -> ()"""


TWICE = function("twice", '%r = "arith.addi"(%x, %x) : (i32, i32) -> i32 loc("k.py":3:5)')
FOUR_TIMES = function(
    "four_times",
    """%t = "tt.call"(%x) <{callee = @twice}> : (i32) -> i32 loc("k.py":6:7)
       %r = "tt.call"(%t) <{callee = @twice}> : (i32) -> i32 loc("k.py":7:7)""",
)
WIDE = (
    function("four_times", '%r = "arith.extsi"(%x) : (i32) -> i64')
    .replace("(i32) -> i32,", "(i32) -> i64,")
    .replace("(%r) : (i32)", "(%r) : (i64)")
)
BODY = """
        %b = "tt.call"(%a) <{callee = @four_times}> : (i32) -> i32 loc("k.py":20:5)
        use %b : i32"""


def test_calls_of_calls(check):
    checks = """
        // CHECK-NOT: twice
        // CHECK:     [[T:%.*]] = "arith.addi"(%a, %a)
        // CHECK-SAME: loc(callsite(callsite("k.py":3:5 at "k.py":6:7) at "k.py":20:5))
        // CHECK:     "arith.addi"([[T]], [[T]])
        // CHECK-SAME: loc(callsite(callsite("k.py":3:5 at "k.py":7:7) at "k.py":20:5))"""
    check([InlineCalls()], "%a: i32", checks + BODY, functions=FOUR_TIMES + TWICE, locations=True)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (function("four_times", '%r = "tt.call"(%x) <{callee = @four_times}> : (i32) -> i32'), "calls itself"),
        (TWICE, "which the module does not have"),
        (WIDE, "does not match its type"),
    ],
)
def test_errors(check, functions, message):
    with pytest.raises(IRError, match=message):
        check([InlineCalls()], "%a: i32", BODY, functions=functions)
