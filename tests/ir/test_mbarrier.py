"""mbarriers in IR: text, and what the verifier objects to."""

from __future__ import annotations

import pytest
from ir_text import generic_text

from deuteron.errors import IRError
from deuteron.ir.text import parse_module

ENCODING = "#ttg.shared_linear<{offset = [], block = []}, alignment = 8>"
ONE = f"!ttg.memdesc<1xi64, {ENCODING}, #ttg.shared_memory, mutable>"
THREE = f"!ttg.memdesc<3x1xi64, {ENCODING}, #ttg.shared_memory, mutable>"


def body(op: str) -> str:
    return f"""
    %bars = "ttg.local_alloc"() : () -> {THREE}
    %i = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %p = "arith.constant"() <{{value = true}}> : () -> i1
    %bar = "ttg.memdesc_index"(%bars, %i) : ({THREE}, i32) -> {ONE}
    {op}"""


def arrive(operands: str, segments: str, types: str, count: int = 8) -> str:
    properties = f"count = {count} : i32, operandSegmentSizes = array<i32: {segments}>"
    return f'"ttng.arrive_barrier"({operands}) <{{{properties}}}> : ({types}) -> ()'


@pytest.mark.parametrize(
    "op",
    [
        f'"ttng.init_barrier"(%bar) <{{count = 128 : i32}}> : ({ONE}) -> ()',
        f'"ttng.inval_barrier"(%bar) : ({ONE}) -> ()',
        '"ttng.fence_mbarrier_init_release_cluster"() : () -> ()',
        f'"ttng.barrier_expect"(%bar, %p) <{{size = 4096 : i32}}> : ({ONE}, i1) -> ()',
        f'"ttng.wait_barrier"(%bar, %i) : ({ONE}, i32) -> ()',
        f'"ttng.wait_barrier"(%bar, %i, %bar) : ({ONE}, i32, {ONE}) -> ()',
        arrive("%bar", "1, 0, 0", ONE),
        arrive("%bar, %p, %bar, %bar", "1, 1, 2", f"{ONE}, i1, {ONE}, {ONE}"),
        f'"ttng.async_copy_mbarrier_arrive"(%bar) <{{noIncrement}}> : ({ONE}) -> ()',
    ],
)
def test_round_trip(parse_body, op):
    parsed = parse_body("", body(op))
    printed = generic_text(parsed)
    assert op.split("(")[0] in printed
    assert generic_text(parse_module(printed)) == printed


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (f'"ttng.inval_barrier"(%bars) : ({THREE}) -> ()', "needs a barrier"),
        (f'"ttng.init_barrier"(%bar) <{{count = 0 : i32}}> : ({ONE}) -> ()', "from 1 to 1048575, got 0"),
        (arrive("%bar", "1, 0, 0", ONE, 1 << 20), "from 1 to 1048575, got 1048576"),
    ],
)
def test_errors(parse_body, op, message):
    with pytest.raises(IRError, match=message):
        parse_body("", body(op))
