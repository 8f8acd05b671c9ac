"""The next slot of a ring in IR: text, and what the verifier objects to."""

from __future__ import annotations

import pytest
from ir_text import generic_text

from deuteron.errors import IRError
from deuteron.ir.text import parse_module


@pytest.mark.parametrize(
    "op",
    [
        '%i1 = "ttg.ring_next"(%i) <{slots = 3 : i32}> : (i32) -> i32',
        '%i1, %p1 = "ttg.ring_next"(%i, %p) <{slots = 1 : i32}> : (i32, i32) -> (i32, i32)',
    ],
)
def test_round_trip(parse_body, op):
    printed = generic_text(parse_body("%i: i32; %p: i32", op))
    assert op in printed
    assert generic_text(parse_module(printed)) == printed


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('%i1 = "ttg.ring_next"(%i) <{slots = 0 : i32}> : (i32) -> i32', "has 0"),
        (
            '%i1, %p1 = "ttg.ring_next"(%i) <{slots = 2 : i32}> : (i32) -> (i32, i32)',
            "a phase where it takes one",
        ),
    ],
)
def test_errors(parse_body, op, message):
    with pytest.raises(IRError, match=message):
        parse_body("%i: i32; %p: i32", op)
