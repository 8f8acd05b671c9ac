"""Offsets of zero, and masks that are known."""

from __future__ import annotations

from deuteron.passes.tile.fold import Fold

LOAD = """"tt.load"(%p, %m, %o) <{operandSegmentSizes = array<i32: 1, 1, 1>, boundaryCheck = array<i32>,
          cache = 2 : i32, evict = 3 : i32, isVolatile = false}> : (!tt.ptr<f32>, i1, f32) -> f32"""
STORE = '"tt.store"(%p, %o, %m) <{boundaryCheck = array<i32>, cache = 1 : i32, evict = 1 : i32}>'


def test_addptr_of_zero(check):
    check(
        [Fold()],
        "%p: !tt.ptr<f32>",
        """
        // CHECK: "tt.print"(%p)
        %z = "arith.constant"() <{value = 0 : i64}> : () -> i64
        %q = "tt.addptr"(%p, %z) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
        use %q : !tt.ptr<f32>""",
    )


def test_a_load_whose_mask_is_true_has_none(check):
    check(
        [Fold()],
        "%p: !tt.ptr<f32>, %o: f32",
        f"""
        // CHECK:      %v = "tt.load"(%p) <
        // CHECK-SAME: operandSegmentSizes = array<i32: 1, 0, 0>
        // CHECK-SAME: cache = 2 : i32, evict = 3 : i32
        %m = "arith.constant"() <{{value = true}}> : () -> i1
        %v = {LOAD}
        use %v : f32""",
    )


def test_a_load_whose_mask_is_false_is_other(check):
    check(
        [Fold()],
        "%p: !tt.ptr<f32>, %o: f32",
        f"""
        // CHECK-NOT: tt.load
        // CHECK: "tt.print"(%o)
        %m = "arith.constant"() <{{value = false}}> : () -> i1
        %v = {LOAD}
        use %v : f32""",
    )


def test_stores_with_known_masks(check):
    check(
        [Fold()],
        "%p: !tt.ptr<f32>, %o: f32",
        f"""
        // CHECK:     "tt.store"(%p, %o) <
        // CHECK-NOT: tt.store
        // CHECK:     "tt.return"
        %m = "arith.constant"() <{{value = true}}> : () -> i1
        {STORE} : (!tt.ptr<f32>, f32, i1) -> ()
        %f = "arith.constant"() <{{value = false}}> : () -> i1
        {STORE.replace("%m", "%f")} : (!tt.ptr<f32>, f32, i1) -> ()""",
    )
