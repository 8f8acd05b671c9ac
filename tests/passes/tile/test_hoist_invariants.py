"""What does not change in a loop leaves it, if it may run where the loop does not."""

from __future__ import annotations

from deuteron.passes.tile.hoist_invariants import HoistInvariants


def loop(body: str, bounds: str = "%lb, %ub, %st") -> str:
    return f"""
        "scf.for"({bounds}) ({{
        ^bb1(%i: i32):
          {body}
          "scf.yield"() : () -> ()
        }}) : (i32, i32, i32) -> ()"""


PARAMETERS = "%lb: i32, %ub: i32, %st: i32, %x: i32, %p: !tt.ptr<f32>, %c: i1"


def test_chains_of_invariant_ops_leave_the_loop_in_order(check):
    checks = """
        // CHECK:      %a = "arith.addi"(%x, %x)
        // CHECK-NEXT: %b = "arith.muli"(%a, %x)
        // CHECK-NEXT: scf.for
        // CHECK:      %d = "arith.muli"(%b, %i)"""
    body = """
          %a = "arith.addi"(%x, %x) : (i32, i32) -> i32
          %b = "arith.muli"(%a, %x) : (i32, i32) -> i32
          %d = "arith.muli"(%b, %i) : (i32, i32) -> i32
          use %d : i32"""
    check([HoistInvariants()], PARAMETERS, checks + loop(body))


def test_out_of_two_loops(check):
    checks = """
        // CHECK:      %a = "arith.addi"(%x, %x)
        // CHECK-NEXT: scf.for
        // CHECK:      %b = "arith.addi"(%i, %x)
        // CHECK-NEXT: %d = "arith.muli"(%a, %b)
        // CHECK-NEXT: scf.for"""
    inner = """
          "scf.for"(%lb, %ub, %st) ({
          ^bb2(%j: i32):
            %a = "arith.addi"(%x, %x) : (i32, i32) -> i32
            %b = "arith.addi"(%i, %x) : (i32, i32) -> i32
            %d = "arith.muli"(%a, %b) : (i32, i32) -> i32
            %e = "arith.muli"(%d, %j) : (i32, i32) -> i32
            use %e : i32
            "scf.yield"() : () -> ()
          }) : (i32, i32, i32) -> ()"""
    check([HoistInvariants()], PARAMETERS, checks + loop(inner))


def test_loads_and_branches_stay_and_divisions_leave(check):
    checks = """
        // CHECK:      arith.divsi
        // CHECK:      scf.for
        // CHECK:      tt.load
        // CHECK:      scf.if
        // CHECK-NEXT: arith.addi"""
    body = """
          %v = "tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32>,
            cache = 1 : i32, evict = 1 : i32, isVolatile = false}> : (!tt.ptr<f32>) -> f32
          %q = "arith.divsi"(%x, %lb) : (i32, i32) -> i32
          "scf.if"(%c) ({
            %a = "arith.addi"(%x, %x) : (i32, i32) -> i32
            use %a : i32
            "scf.yield"() : () -> ()
          }, {}) : (i1) -> ()
          use %v : f32
          use %q : i32"""
    check([HoistInvariants()], PARAMETERS, checks + loop(body))


def test_a_reduction_of_an_invariant_tile_leaves_with_its_region(check):
    checks = """
        // CHECK: tt.reduce
        // CHECK: scf.for
        // CHECK: "tt.print"(%s)"""
    body = """
          %s = "tt.reduce"(%t) <{axis = 0 : i32}> ({
          ^bb2(%a: f32, %b: f32):
            %r = "arith.addf"(%a, %b) : (f32, f32) -> f32
            "tt.reduce.return"(%r) : (f32) -> ()
          }) : (tensor<4xf32>) -> f32
          use %s : f32"""
    check([HoistInvariants()], PARAMETERS + ", %t: tensor<4xf32>", checks + loop(body))


def test_out_of_a_while(check):
    check(
        [HoistInvariants()],
        "%x: i32",
        """
        // CHECK:      %a = "arith.addi"(%x, %x)
        // CHECK-NEXT: scf.while
        %r = "scf.while"(%x) ({
        ^bb1(%v: i32):
          %m = "arith.cmpi"(%v, %x) <{predicate = 2 : i64}> : (i32, i32) -> i1
          "scf.condition"(%m, %v) : (i1, i32) -> ()
        }, {
        ^bb2(%w: i32):
          %a = "arith.addi"(%x, %x) : (i32, i32) -> i32
          %n = "arith.addi"(%w, %a) : (i32, i32) -> i32
          "scf.yield"(%n) : (i32) -> ()
        }) : (i32) -> i32
        use %r : i32""",
    )
