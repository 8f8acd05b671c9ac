"""Constant conditions take their branch, loops of no or one trip are no loops."""

from __future__ import annotations

import pytest

from deuteron.passes.tile.fold import Fold

BOUNDS = """
        %lb = "arith.constant"() <{{value = 3 : i32}}> : () -> i32
        %ub = "arith.constant"() <{{value = {end} : i32}}> : () -> i32
        %st = "arith.constant"() <{{value = 4 : i32}}> : () -> i32"""
LOOP = """
        %r = "scf.for"(%lb, %ub, %st, %x) ({
        ^bb1(%i: i32, %a: i32):
          %n = "arith.muli"(%a, %i) : (i32, i32) -> i32
          "scf.yield"(%n) : (i32) -> ()
        }) : (i32, i32, i32, i32) -> i32
        use %r : i32"""


@pytest.mark.parametrize(("condition", "op"), [("true", "muli"), ("false", "addi")])
def test_the_taken_branch(check, condition, op):
    check(
        [Fold()],
        "%x: i32",
        f"""
        // CHECK-NOT: scf.if
        // CHECK:     [[V:%.*]] = "arith.{op}"(%x, %x)
        // CHECK-NEXT: "tt.print"([[V]])
        %c = "arith.constant"() <{{value = {condition}}}> : () -> i1
        %r = "scf.if"(%c) ({{
          %a = "arith.muli"(%x, %x) : (i32, i32) -> i32
          "scf.yield"(%a) : (i32) -> ()
        }}, {{
          %b = "arith.addi"(%x, %x) : (i32, i32) -> i32
          "scf.yield"(%b) : (i32) -> ()
        }}) : (i1) -> i32
        use %r : i32""",
    )


def test_an_if_without_else_goes(check):
    check(
        [Fold()],
        "%x: i32",
        """
        // CHECK-NOT: tt.print
        // CHECK:     "tt.return"
        %c = "arith.constant"() <{value = false}> : () -> i1
        "scf.if"(%c) ({
          use %x : i32
          "scf.yield"() : () -> ()
        }, {}) : (i1) -> ()""",
    )


@pytest.mark.parametrize("end", [3, -5])
def test_a_loop_of_no_trip_is_its_initial_values(check, end):
    checks = """
        // CHECK-NOT: scf.for
        // CHECK:     "tt.print"(%x)"""
    check([Fold()], "%x: i32", checks + BOUNDS.format(end=end) + LOOP)


def test_a_loop_of_one_trip_is_its_body(check):
    checks = """
        // CHECK-NOT: scf.for
        // CHECK:     [[N:%.*]] = "arith.muli"(%x, %lb)
        // CHECK:     "tt.print"([[N]])"""
    check([Fold()], "%x: i32", checks + BOUNDS.format(end=7) + LOOP)


def test_a_loop_of_two_trips_stays(check):
    check([Fold()], "%x: i32", "\n        // CHECK: scf.for\n" + BOUNDS.format(end=8) + LOOP)


def test_a_loop_that_passes_a_value_on(check):
    """The outcome of the body is one of its arguments."""
    check(
        [Fold()],
        "%x: i32, %y: i32",
        """
        // CHECK: "tt.print"(%y)
        // CHECK: "tt.print"(%x)"""
        + BOUNDS.format(end=4)
        + """
        %r:2 = "scf.for"(%lb, %ub, %st, %x, %y) ({
        ^bb1(%i: i32, %a: i32, %b: i32):
          "scf.yield"(%b, %a) : (i32, i32) -> ()
        }) : (i32, i32, i32, i32, i32) -> (i32, i32)
        use %r#0 : i32
        use %r#1 : i32""",
    )
