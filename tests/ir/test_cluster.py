"""What blocks of a cluster do, in IR: text, and what the verifier objects to."""

import pytest
from ir_text import generic_text

from deuteron.errors import IRError
from deuteron.ir.text import parse_module
from deuteron.ir.ttng.cluster import ClusterCTARankOp


def kernel(type: str) -> str:
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = () -> (), sym_visibility = "public"}}> ({{
    %rank = "ttng.cluster_cta_rank"() : () -> {type}
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""


def test_round_trip():
    module = parse_module(kernel("i32"))
    assert any(isinstance(op, ClusterCTARankOp) for op in module.walk())
    assert '%rank = "ttng.cluster_cta_rank"() : () -> i32' in generic_text(parse_module(generic_text(module)))


def test_the_number_of_a_block_is_an_i32():
    with pytest.raises(IRError, match="Expected attribute i32 but got i64"):
        parse_module(kernel("i64"))


BAR = "!ttg.memdesc<1xi64, #ttg.shared_linear<{offset = [], block = []}, alignment = 8>, #ttg.shared_memory, mutable>"
SEGMENTS = "operandSegmentSizes = array<i32: 1, 0, 0>"
TOGETHER = f"""
"builtin.module"() ({{
  "tt.func"() <{{sym_name = "k", function_type = () -> (), sym_visibility = "public"}}> ({{
    %bar = "ttg.local_alloc"() : () -> {BAR}
    "ttng.cluster_barrier"() : () -> ()
    "ttng.arrive_barrier"(%bar) <{{count = 4 : i32, numCTAs = 2 : i32, {SEGMENTS}}}> : ({BAR}) -> ()
    "tt.return"() : () -> ()
  }}) : () -> ()
}}) : () -> ()
"""


def test_arrivals_at_the_barriers_of_all_blocks():
    module = parse_module(generic_text(parse_module(TOGETHER)))
    text = generic_text(module)
    assert '"ttng.cluster_barrier"() : () -> ()' in text and "count = 4 : i32, numCTAs = 2 : i32" in text
    assert next(op for op in module.walk() if op.name == "ttng.arrive_barrier").num_ctas == 2
