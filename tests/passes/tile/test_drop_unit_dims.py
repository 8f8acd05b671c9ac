"""Blocks of descriptors without the dimensions of extent 1 that kernels reshape away."""

from __future__ import annotations

from deuteron.passes.tile.drop_unit_dims import DropUnitDims
from deuteron.passes.tile.rewrite_descriptors_to_pointers import RewriteDescriptorsToPointers

PARAMETERS = "%p: !tt.ptr<f16>, %n: i32, %s: i64, %t: i64, %i: i32, %j: i32, %u: tensor<16x32xf16>"


def made(block: str) -> str:
    return f"""
        %one = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
        %d = "tt.make_tensor_descriptor"(%p, %i, %n, %n, %s, %t, %one)
            <{{padding = 2 : i32, operandSegmentSizes = array<i32: 1, 3, 3>}}>
            : (!tt.ptr<f16>, i32, i32, i32, i64, i64, i64) -> !tt.tensordesc<{block}xf16>"""


def load(block: str) -> str:
    return f"""
        %x = "tt.descriptor_load"(%d, %i, %j, %i) <{{cache = 1 : i32, evict = 1 : i32}}>
            : (!tt.tensordesc<{block}xf16>, i32, i32, i32) -> tensor<{block}xf16>"""


def reshape(block: str, shape: str) -> str:
    return f"""
        %y = "tt.reshape"(%x) : (tensor<{block}xf16>) -> tensor<{shape}xf16>
        use %y : tensor<{shape}xf16>"""


def test_a_block_is_loaded_as_it_is_used(check):
    checks = """
        // CHECK: %x = "tt.descriptor_load"(%d, %i, %j, %i)
        // CHECK-SAME: (!tt.tensordesc<1x16x32xf16>, i32, i32, i32) -> tensor<16x32xf16>
        // CHECK-NEXT: "tt.print"(%x)"""
    block = "1x16x32"
    check([DropUnitDims()], PARAMETERS, f"{checks}{made(block)}{load(block)}{reshape(block, '16x32')}")


def test_dimensions_between_others_come_first(check):
    checks = """
        // CHECK: %[[D:.*]] = "tt.make_tensor_descriptor"(%p, %n, %i, %n, %t, %s, %one)
        // CHECK-SAME: padding = 2
        // CHECK-SAME: -> !tt.tensordesc<1x16x32xf16>
        // CHECK: "tt.descriptor_load"(%[[D]], %j, %i, %i)
        // CHECK-NOT: tt.reshape"""
    block = "16x1x32"
    check([DropUnitDims()], PARAMETERS, f"{checks}{made(block)}{load(block)}{reshape(block, '16x32')}")


def test_what_is_stored(check):
    checks = """
        // CHECK: "tt.descriptor_store"(%d, %u, %i, %j, %i)
        // CHECK-SAME: (!tt.tensordesc<1x16x32xf16>, tensor<16x32xf16>, i32, i32, i32)"""
    store = """
        %v = "tt.expand_dims"(%u) <{axis = 0 : i32}> : (tensor<16x32xf16>) -> tensor<1x16x32xf16>
        "tt.descriptor_store"(%d, %v, %i, %j, %i)
            : (!tt.tensordesc<1x16x32xf16>, tensor<1x16x32xf16>, i32, i32, i32) -> ()"""
    check([DropUnitDims()], PARAMETERS, f"{checks}{made('1x16x32')}{store}")


def test_a_block_that_something_else_needs_stays(check):
    block = "1x16x32"
    checks = "// CHECK: -> tensor<1x16x32xf16>\n// CHECK: tt.reshape"
    needed = f"\n use %x : tensor<{block}xf16>"
    check([DropUnitDims()], PARAMETERS, f"{checks}{made(block)}{load(block)}{reshape(block, '16x32')}{needed}")


def test_another_shape_stays(check):
    block = "1x16x32"
    checks = "// CHECK: -> tensor<1x16x32xf16>\n// CHECK: tt.reshape"
    check([DropUnitDims()], PARAMETERS, f"{checks}{made(block)}{load(block)}{reshape(block, '32x16')}")


def test_pointers_and_masks_of_what_is_left(check):
    """The dimension that is left out is one comparison of scalars."""
    checks = """
        // CHECK: "tt.splat"({{.*}}) : (!tt.ptr<f16>) -> tensor<16x32x!tt.ptr<f16>>
        // CHECK: "tt.splat"({{.*}}) : (i1) -> tensor<16x32xi1>
        // CHECK: "tt.load"({{.*}}) <{{.*}}> : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi1>, tensor<16x32xf16>)"""
    block = "1x16x32"
    text = f"{checks}{made(block)}{load(block)}{reshape(block, '16x32')}"
    check([DropUnitDims(), RewriteDescriptorsToPointers()], PARAMETERS, text)
