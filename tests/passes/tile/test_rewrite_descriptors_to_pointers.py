"""Accesses through descriptors as accesses through pointers."""

from __future__ import annotations

import pytest

from deuteron.errors import CompilationError
from deuteron.passes.tile.rewrite_descriptors_to_pointers import RewriteDescriptorsToPointers

PARAMETERS = "%p: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32, %j: i32"
PADDING = "<{padding = PADDING : i32, operandSegmentSizes = array<i32: 1, 2, 2>}>"
MAKE = f"""
        %one = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
        %d = "tt.make_tensor_descriptor"(%p, %m, %n, %s, %one) {PADDING}
            : (!tt.ptr<f16>, i32, i32, i64, i64) -> !tt.tensordesc<16x32xf16>"""
LOAD = """
        %x = "tt.descriptor_load"(%d, %i, %j) <{cache = 1 : i32, evict = 1 : i32}>
            : (!tt.tensordesc<16x32xf16>, i32, i32) -> tensor<16x32xf16>"""
STORE = """
        "tt.descriptor_store"(%d, %x, %i, %j) : (!tt.tensordesc<16x32xf16>, tensor<16x32xf16>, i32, i32) -> ()"""
REDUCE = """
        "tt.descriptor_reduce"(%d, %x, %i, %j) <{kind = 1 : i32}>
            : (!tt.tensordesc<16x32xf16>, tensor<16x32xf16>, i32, i32) -> ()"""
ZERO, NAN = MAKE.replace("PADDING", "1"), MAKE.replace("PADDING", "2")


def test_the_offset_of_the_block_is_a_scalar(check):
    checks = """
        // CHECK-NOT:  tensordesc
        // CHECK:      %[[R:.*]] = "arith.extsi"(%i) : (i32) -> i64
        // CHECK-NEXT: %[[O:.*]] = "arith.muli"(%[[R]], %s)
        // CHECK-NEXT: %[[Q:.*]] = "tt.addptr"(%p, %[[O]]) : (!tt.ptr<f16>, i64) -> !tt.ptr<f16>
        // CHECK:      "tt.splat"({{.*}}) : (!tt.ptr<f16>) -> tensor<16x32x!tt.ptr<f16>>
        // CHECK:      "tt.load"({{.*}}) <{{.*}}> : (tensor<16x32x!tt.ptr<f16>>, tensor<16x32xi1>, tensor<16x32xf16>)"""
    check([RewriteDescriptorsToPointers()], PARAMETERS, f"{checks}{ZERO}{LOAD}\nuse %i : i32")


def test_one_comparison_for_each_dimension(check):
    checks = """
        // CHECK: %[[ROWS:.*]] = "arith.maxsi"(%m, {{.*}})
        // CHECK: %[[COLUMNS:.*]] = "arith.maxsi"(%n, {{.*}})
        // CHECK: %[[M:.*]] = "tt.splat"(%[[ROWS]]) : (i32) -> tensor<16xi32>
        // CHECK: "arith.cmpi"({{.*}}, %[[M]]) <{predicate = 6 : i64}>
        // CHECK: %[[N:.*]] = "tt.splat"(%[[COLUMNS]]) : (i32) -> tensor<32xi32>
        // CHECK: "arith.cmpi"({{.*}}, %[[N]]) <{predicate = 6 : i64}>
        // CHECK: "arith.andi"
        // CHECK-NOT: arith.cmpi"""
    check([RewriteDescriptorsToPointers()], PARAMETERS, f"{checks}{ZERO}{LOAD}\nuse %i : i32")


def test_padding(check):
    check([RewriteDescriptorsToPointers()], PARAMETERS, f"// CHECK: dense<0.000000e+00>\n{ZERO}{LOAD}\nuse %i : i32")
    check([RewriteDescriptorsToPointers()], PARAMETERS, f"// CHECK: value = 0x7e00 : f16\n{NAN}{LOAD}\nuse %i : i32")


def test_stores_and_reductions(check):
    checks = """
        // CHECK: "tt.store"
        // CHECK: "tt.atomic_rmw"({{.*}}) <{atomic_rmw_op = 5 : i32, sem = 1 : i32, scope = 1 : i32}>"""
    check([RewriteDescriptorsToPointers()], PARAMETERS, f"{checks}{ZERO}{LOAD}{STORE}{REDUCE}")


def test_a_descriptor_from_elsewhere_is_refused(parse_kernel):
    module = parse_kernel("%d: !tt.tensordesc<16x32xf16>, %i: i32, %j: i32", LOAD)
    with pytest.raises(CompilationError, match="is not made by tt.make_tensor_descriptor in this function"):
        RewriteDescriptorsToPointers().apply(None, module)


def test_what_tma_asks_of_base_and_strides_is_promised_where_there_is_tma(check):
    """Also of rows that are as long as they are far apart, so that 16 bytes of them are inside or outside."""
    make = f"""
        %elsewhere = "tt.addptr"(%p, %i) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
        %apart = "arith.extsi"(%n) : (i32) -> i64{ZERO}""".replace("(%p, %m, %n, %s,", "(%elsewhere, %m, %n, %apart,")
    checks = """
        // CHECK: "arith.maxsi"(%n, {{.*}}) {tt.divisibility = dense<8> : tensor<1xi32>}
        // CHECK: "tt.addptr"(%elsewhere, {{.*}}) {tt.divisibility = dense<16> : tensor<1xi32>}
        // CHECK: "arith.muli"({{.*}}) {{.*}}{tt.divisibility = dense<8> : tensor<1xi32>}"""
    check([RewriteDescriptorsToPointers(tma_bytes=1 << 17)], PARAMETERS, f"{checks}{make}{LOAD}\nuse %i : i32")
    none = "// CHECK-NOT: tt.divisibility"
    check([RewriteDescriptorsToPointers()], PARAMETERS, f"{none}{make}{LOAD}\nuse %i : i32")
