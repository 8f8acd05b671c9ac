"""What nobody uses goes, loop-carried values included; what has an effect stays."""

from __future__ import annotations

import pytest

from deuteron.passes.tile.eliminate_dead_code import EliminateDeadCode

LOAD = """"tt.load"(%p) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>, cache = 1 : i32,
          evict = 1 : i32, isVolatile = {volatile}}}> : (!tt.ptr<f32>) -> f32"""


def test_chains_without_a_use_go(check):
    check(
        [EliminateDeadCode()],
        "%x: i32",
        """
        // CHECK-NOT: arith
        // CHECK:     "tt.return"
        %a = "arith.addi"(%x, %x) : (i32, i32) -> i32
        %b = "arith.addi"(%a, %x) : (i32, i32) -> i32""",
    )


@pytest.mark.parametrize(("volatile", "check_line"), [("false", "CHECK-NOT"), ("true", "CHECK")])
def test_unused_loads_go_unless_volatile(check, volatile, check_line):
    body = f"// {check_line}: tt.load\n        %v = {LOAD.format(volatile=volatile)}\n        // CHECK: tt.return"
    check([EliminateDeadCode()], "%p: !tt.ptr<f32>", body)


def test_carried_values_that_only_feed_each_other_go(check):
    check(
        [EliminateDeadCode()],
        "%n: i32, %x: f32, %y: f32, %z: f32",
        """
        // CHECK:      %r = "scf.for"(%n, %n, %n, %y) ({
        // CHECK-NEXT: ^bb0(%i: i32, %b: f32):
        // CHECK-NEXT:   %b2 = "arith.mulf"(%b, %b)
        // CHECK-NEXT:   "scf.yield"
        // CHECK-NEXT: }) : (i32, i32, i32, f32) -> f32
        // CHECK-NEXT: "tt.print"(%r)
        %r:3 = "scf.for"(%n, %n, %n, %x, %y, %z) ({
        ^bb1(%i: i32, %a: f32, %b: f32, %c: f32):
          %a2 = "arith.addf"(%a, %c) : (f32, f32) -> f32
          %b2 = "arith.mulf"(%b, %b) : (f32, f32) -> f32
          %c2 = "arith.addf"(%c, %a) : (f32, f32) -> f32
          "scf.yield"(%a2, %b2, %c2) : (f32, f32, f32) -> ()
        }) : (i32, i32, i32, f32, f32, f32) -> (f32, f32, f32)
        use %r#1 : f32""",
    )


def test_what_only_feeds_a_later_loop_without_a_use_goes(check):
    """Of the first loop all results are used, of the loop in the second as well."""
    check(
        [EliminateDeadCode()],
        "%n: i32, %x: f32",
        """
        // CHECK-NOT: arith.addf
        // CHECK:     "tt.return"
        %r = "scf.for"(%n, %n, %n, %x) ({
        ^bb1(%i: i32, %a: f32):
          %a2 = "arith.addf"(%a, %a) : (f32, f32) -> f32
          "scf.yield"(%a2) : (f32) -> ()
        }) : (i32, i32, i32, f32) -> f32
        %s = "scf.for"(%n, %n, %n, %r) ({
        ^bb2(%j: i32, %b: f32):
          %c = "scf.for"(%n, %n, %n, %b) ({
          ^bb3(%k: i32, %d: f32):
            %d2 = "arith.addf"(%d, %d) : (f32, f32) -> f32
            "scf.yield"(%d2) : (f32) -> ()
          }) : (i32, i32, i32, f32) -> f32
          use %n : i32
          "scf.yield"(%c) : (f32) -> ()
        }) : (i32, i32, i32, f32) -> f32""",
    )


def test_a_carried_value_that_another_needs_stays(check):
    check(
        [EliminateDeadCode()],
        "%n: i32, %x: f32, %y: f32",
        """
        // CHECK: "scf.for"(%n, %n, %n, %x, %y)
        %r:2 = "scf.for"(%n, %n, %n, %x, %y) ({
        ^bb1(%i: i32, %a: f32, %b: f32):
          %a2 = "arith.addf"(%a, %b) : (f32, f32) -> f32
          %b2 = "arith.mulf"(%b, %b) : (f32, f32) -> f32
          "scf.yield"(%a2, %b2) : (f32, f32) -> ()
        }) : (i32, i32, i32, f32, f32) -> (f32, f32)
        use %r#0 : f32""",
    )


def test_unused_results_of_an_if_go(check):
    check(
        [EliminateDeadCode()],
        "%c: i1, %x: f32, %y: f32",
        """
        // CHECK:     %r = "scf.if"(%c) ({
        // CHECK-NOT: arith.addf
        // CHECK:     "scf.yield"(%x) : (f32)
        // CHECK:     "scf.yield"(%y) : (f32)
        // CHECK:     "tt.print"(%r)
        %r:2 = "scf.if"(%c) ({
          %a = "arith.addf"(%x, %x) : (f32, f32) -> f32
          "scf.yield"(%a, %x) : (f32, f32) -> ()
        }, {
          "scf.yield"(%x, %y) : (f32, f32) -> ()
        }) : (i1) -> (f32, f32)
        use %r#1 : f32""",
    )


def test_a_loop_with_an_effect_stays_without_its_values(check):
    check(
        [EliminateDeadCode()],
        "%n: i32, %x: f32",
        """
        // CHECK: "scf.for"(%n, %n, %n) ({
        // CHECK: "tt.print"(%i)
        %r = "scf.for"(%n, %n, %n, %x) ({
        ^bb1(%i: i32, %a: f32):
          use %i : i32
          "scf.yield"(%a) : (f32) -> ()
        }) : (i32, i32, i32, f32) -> f32""",
    )


def test_a_while_stays(check):
    check(
        [EliminateDeadCode()],
        "%x: i32",
        """
        // CHECK: scf.while
        // CHECK: arith.addi
        %r = "scf.while"(%x) ({
        ^bb1(%v: i32):
          %m = "arith.cmpi"(%v, %x) <{predicate = 2 : i64}> : (i32, i32) -> i1
          "scf.condition"(%m, %v) : (i1, i32) -> ()
        }, {
        ^bb2(%w: i32):
          %n = "arith.addi"(%w, %x) : (i32, i32) -> i32
          "scf.yield"(%n) : (i32) -> ()
        }) : (i32) -> i32""",
    )
