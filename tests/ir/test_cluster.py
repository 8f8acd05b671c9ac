"""The block's place in its cluster, in IR: text, and what the verifier objects to."""

import pytest

from deuteron.errors import IRError
from deuteron.ir.text import parse_module, print_module
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
    assert '%rank = "ttng.cluster_cta_rank"() : () -> i32' in print_module(parse_module(print_module(module)))


def test_the_number_of_a_block_is_an_i32():
    with pytest.raises(IRError, match="Expected attribute i32 but got i64"):
        parse_module(kernel("i64"))
