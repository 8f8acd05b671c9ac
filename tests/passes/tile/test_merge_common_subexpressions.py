"""Equal pure ops are one, and loads between which nothing is written."""

from __future__ import annotations

import pytest

from deuteron.passes.tile.merge_common_subexpressions import MergeCommonSubexpressions

LOAD = """"tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>, cache = 1 : i32,
          evict = 1 : i32, isVolatile = false}> : (!tt.ptr<f32>) -> f32"""
STORE = (
    '"tt.store"(%q, %x) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}> : (!tt.ptr<f32>, f32) -> ()'
)


def test_equal_ops_are_merged_and_different_ones_are_not(check):
    check(
        [MergeCommonSubexpressions()],
        "%x: i32, %y: i32",
        """
        // CHECK:      %a = "arith.addi"(%x, %y)
        // CHECK-NEXT: %c = "arith.subi"(%x, %y)
        // CHECK-NEXT: "arith.muli"(%a, %a)
        %a = "arith.addi"(%x, %y) : (i32, i32) -> i32
        %b = "arith.addi"(%x, %y) : (i32, i32) -> i32
        %c = "arith.subi"(%x, %y) : (i32, i32) -> i32
        %d = "arith.muli"(%a, %b) : (i32, i32) -> i32
        use %d : i32
        use %c : i32""",
    )


def test_attributes_and_result_types_count(check):
    check(
        [MergeCommonSubexpressions()],
        "%x: i32",
        """
        // CHECK: predicate = 2
        // CHECK: predicate = 3
        // CHECK: -> tensor<4xi32>
        // CHECK: -> tensor<8xi32>
        %a = "arith.cmpi"(%x, %x) <{predicate = 2 : i64}> : (i32, i32) -> i1
        %b = "arith.cmpi"(%x, %x) <{predicate = 3 : i64}> : (i32, i32) -> i1
        %c = "tt.splat"(%x) : (i32) -> tensor<4xi32>
        %d = "tt.splat"(%x) : (i32) -> tensor<8xi32>""",
    )


def test_of_ops_that_differ_in_the_types_of_results_each_is_found_again(check):
    check(
        [MergeCommonSubexpressions()],
        "%x: i32",
        """
        // CHECK:      %c = "tt.splat"(%x) : (i32) -> tensor<4xi32>
        // CHECK-NEXT: %d = "tt.splat"(%x) : (i32) -> tensor<8xi32>
        // CHECK-NEXT: "tt.print"(%d)
        // CHECK-NEXT: "tt.print"(%c)
        %c = "tt.splat"(%x) : (i32) -> tensor<4xi32>
        %d = "tt.splat"(%x) : (i32) -> tensor<8xi32>
        %e = "tt.splat"(%x) : (i32) -> tensor<8xi32>
        %f = "tt.splat"(%x) : (i32) -> tensor<4xi32>
        use %e : tensor<8xi32>
        use %f : tensor<4xi32>""",
    )


def test_what_a_branch_loads_is_not_known_after_it(check):
    check(
        [MergeCommonSubexpressions()],
        "%p: !tt.ptr<f32>, %c: i1, %x: f32",
        f"""
        // CHECK: scf.if
        // CHECK: %a = "tt.load"
        // CHECK: %b = "tt.load"
        // CHECK-NOT: tt.load
        %r = "scf.if"(%c) ({{
          %a = {LOAD}
          "scf.yield"(%a) : (f32) -> ()
        }}, {{
          "scf.yield"(%x) : (f32) -> ()
        }}) : (i1) -> f32
        %b = {LOAD}
        %d = {LOAD}
        %s = "arith.addf"(%b, %r) : (f32, f32) -> f32
        %t = "arith.addf"(%s, %d) : (f32, f32) -> f32
        use %t : f32""",
    )


def test_a_branch_uses_what_is_before_it_but_not_what_is_in_the_other(check):
    check(
        [MergeCommonSubexpressions()],
        "%x: i32, %c: i1",
        """
        // CHECK:      %a = "arith.addi"(%x, %x)
        // CHECK:      scf.if
        // CHECK-NOT:  arith.addi
        // CHECK:      "tt.print"(%a)
        // CHECK:      [[M:%.*]] = "arith.muli"
        // CHECK:      [[N:%.*]] = "arith.muli"
        // CHECK-NEXT: "tt.print"([[N]])
        %a = "arith.addi"(%x, %x) : (i32, i32) -> i32
        "scf.if"(%c) ({
          %b = "arith.addi"(%x, %x) : (i32, i32) -> i32
          use %b : i32
          %m = "arith.muli"(%x, %x) : (i32, i32) -> i32
          use %m : i32
          "scf.yield"() : () -> ()
        }, {
          %n = "arith.muli"(%x, %x) : (i32, i32) -> i32
          use %n : i32
          "scf.yield"() : () -> ()
        }) : (i1) -> ()""",
    )


def test_loads_are_merged_where_nothing_writes_between_them(check):
    check(
        [MergeCommonSubexpressions()],
        "%p: !tt.ptr<f32>",
        f"""
        // CHECK: tt.load
        // CHECK-NOT: tt.load
        %a = {LOAD}
        %b = {LOAD}
        %c = "arith.addf"(%a, %b) : (f32, f32) -> f32
        use %c : f32""",
    )


@pytest.mark.parametrize(
    "between",
    [
        STORE,
        LOAD.replace("isVolatile = false", "isVolatile = true"),
        '"ttg.barrier"() <{addrSpace = 31 : i32}> : () -> ()',
    ],
    ids=["store", "volatile load", "barrier"],
)
def test_loads_are_not_merged_where_memory_may_change(check, between):
    check(
        [MergeCommonSubexpressions()],
        "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %x: f32",
        f"""
        // CHECK: %a = "tt.load"
        // CHECK: %b = "tt.load"
        %a = {LOAD}
        {between}
        %b = {LOAD}
        %c = "arith.addf"(%a, %b) : (f32, f32) -> f32
        use %c : f32""",
    )


def test_what_a_loop_loads_is_not_what_was_loaded_before_where_the_loop_writes(check):
    check(
        [MergeCommonSubexpressions()],
        "%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %x: f32",
        f"""
        // CHECK: %a = "tt.load"
        // CHECK: scf.for
        // CHECK: %b = "tt.load"
        // CHECK: %d = "tt.load"
        %a = {LOAD}
        %r = "scf.for"(%n, %n, %n, %a) ({{
        ^bb1(%i: i32, %s: f32):
          %b = {LOAD}
          %t = "arith.addf"(%s, %b) : (f32, f32) -> f32
          {STORE}
          "scf.yield"(%t) : (f32) -> ()
        }}) : (i32, i32, i32, f32) -> f32
        %d = {LOAD}
        %c = "arith.addf"(%d, %r) : (f32, f32) -> f32
        use %c : f32""",
    )


def test_what_a_loop_loads_that_only_reads_is_what_was_loaded_before(check):
    check(
        [MergeCommonSubexpressions()],
        "%p: !tt.ptr<f32>, %n: i32",
        f"""
        // CHECK: %a = "tt.load"
        // CHECK-NOT: tt.load
        %a = {LOAD}
        %r = "scf.for"(%n, %n, %n, %a) ({{
        ^bb1(%i: i32, %s: f32):
          %b = {LOAD}
          %t = "arith.addf"(%s, %b) : (f32, f32) -> f32
          "scf.yield"(%t) : (f32) -> ()
        }}) : (i32, i32, i32, f32) -> f32
        use %r : f32""",
    )
