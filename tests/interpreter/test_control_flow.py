"""Loops, branches and calls."""

from __future__ import annotations

import numpy as np
import pytest

from deuteron.errors import IRError, Location
from deuteron.interpreter import run_module
from deuteron.ir.text import parse_module

STORE = "<{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}>"
SUM = f"""
    %r:2 = "scf.for"(%lb, %ub, %st, %lb, %ub) ({{
    ^bb1(%i: i32, %a: i32, %b: i32):
      %n = "arith.addi"(%a, %i) : (i32, i32) -> i32
      "scf.yield"(%n, %a) : (i32, i32) -> ()
    }}) : (i32, i32, i32, i32, i32) -> (i32, i32) loc("k.py":4:5)
    "tt.store"(%out, %r#0) {STORE} : (!tt.ptr<i32>, i32) -> ()
    %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %p = "tt.addptr"(%out, %one) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    "tt.store"(%p, %r#1) {STORE} : (!tt.ptr<i32>, i32) -> ()"""
BOUNDS = "%out: !tt.ptr<i32>, %lb: i32, %ub: i32, %st: i32"


@pytest.mark.parametrize("bounds", [(0, 10, 3), (-5, 5, 1), (3, 3, 1), (7, 2, 1), (0, 1, 100)])
def test_for_carries_values(run_kernel, bounds):
    out = np.int32([77, 77])
    run_kernel(BOUNDS, SUM, [out, *bounds])
    a, b = bounds[0], bounds[1]
    for i in range(*bounds):
        a, b = a + i, a
    assert out.tolist() == [a, b]


@pytest.mark.parametrize("step", [0, -1])
def test_a_step_that_is_not_positive(run_kernel, step):
    with pytest.raises(IRError, match="Expected a positive step") as caught:
        run_kernel(BOUNDS, SUM, [np.int32([77, 77]), 0, 10, step])
    assert caught.value.location == Location("k.py", 4, 5)


def test_while(run_kernel):
    """The Collatz sequence of 27 takes 111 steps."""
    body = f"""
    %one = "arith.constant"() <{{value = 1 : i32}}> : () -> i32
    %zero = "arith.constant"() <{{value = 0 : i32}}> : () -> i32
    %three = "arith.constant"() <{{value = 3 : i32}}> : () -> i32
    %r:2 = "scf.while"(%n, %zero) ({{
    ^bb1(%v: i32, %k: i32):
      %more = "arith.cmpi"(%v, %one) <{{predicate = 1 : i64}}> : (i32, i32) -> i1
      "scf.condition"(%more, %v, %k) : (i1, i32, i32) -> ()
    }}, {{
    ^bb2(%w: i32, %j: i32):
      %bit = "arith.andi"(%w, %one) : (i32, i32) -> i32
      %odd = "arith.trunci"(%bit) : (i32) -> i1
      %next = "scf.if"(%odd) ({{
        %t = "arith.muli"(%w, %three) : (i32, i32) -> i32
        %u = "arith.addi"(%t, %one) : (i32, i32) -> i32
        "scf.yield"(%u) : (i32) -> ()
      }}, {{
        %h = "arith.shrsi"(%w, %one) : (i32, i32) -> i32
        "scf.yield"(%h) : (i32) -> ()
      }}) : (i1) -> i32
      %count = "arith.addi"(%j, %one) : (i32, i32) -> i32
      "scf.yield"(%next, %count) : (i32, i32) -> ()
    }}) : (i32, i32) -> (i32, i32)
    "tt.store"(%out, %r#1) {STORE} : (!tt.ptr<i32>, i32) -> ()"""
    out = np.int32([77])
    run_kernel("%out: !tt.ptr<i32>, %n: i32", body, [out, 27])
    assert out[0] == 111


def test_an_if_without_else(run_kernel):
    body = f"""
    "scf.if"(%c) ({{
      "tt.store"(%out, %n) {STORE} : (!tt.ptr<i32>, i32) -> ()
      "scf.yield"() : () -> ()
    }}, {{}}) : (i1) -> ()"""
    out = np.int32([77])
    run_kernel("%out: !tt.ptr<i32>, %n: i32, %c: i1", body, [out, 5, False])
    assert out[0] == 77
    run_kernel("%out: !tt.ptr<i32>, %n: i32, %c: i1", body, [out, 5, True])
    assert out[0] == 5


def test_call():
    module = parse_module(f"""
    "builtin.module"() ({{
      "tt.func"() <{{sym_name = "twice", function_type = (i32) -> i32, sym_visibility = "private"}}> ({{
      ^bb0(%x: i32):
        %y = "arith.addi"(%x, %x) : (i32, i32) -> i32
        "tt.return"(%y) : (i32) -> ()
      }}) : () -> ()
      "tt.func"() <{{sym_name = "k", function_type = (!tt.ptr<i32>, i32) -> (), sym_visibility = "public"}}> ({{
      ^bb0(%out: !tt.ptr<i32>, %n: i32):
        %a = "tt.call"(%n) <{{callee = @twice}}> : (i32) -> i32
        %b = "tt.call"(%a) <{{callee = @twice}}> : (i32) -> i32
        "tt.store"(%out, %b) {STORE} : (!tt.ptr<i32>, i32) -> ()
        "tt.return"() : () -> ()
      }}) : () -> ()
    }}) : () -> ()""")
    out = np.int32([77])
    run_module(module, [out, 5], (1, 1, 1))
    assert out[0] == 20
