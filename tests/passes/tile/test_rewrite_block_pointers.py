"""Loads and stores through block pointers as those through tiles of pointers."""

from __future__ import annotations

from deuteron.passes.tile.rewrite_block_pointers import RewriteBlockPointers

PARAMETERS = "%p: !tt.ptr<f16>, %m: i32, %n: i64, %s: i64, %i: i32, %j: i32"
BLOCK, TILE = "!tt.ptr<tensor<16x32xf16>>", "tensor<16x32xf16>"
MAKE = f"""
    %one = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
    %size = "arith.extsi"(%m) : (i32) -> i64
    %b = "tt.make_tensor_ptr"(%p, %size, %n, %s, %one, %i, %j) <{{order = array<i32: 1, 0>}}>
        : (!tt.ptr<f16>, i64, i64, i64, i64, i32, i32) -> {BLOCK}"""


def load(checked: str, padding: int = 1) -> str:
    return f"""
        %x = "tt.load"(%b) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32{checked}>,
            padding = {padding} : i32, cache = 2 : i32, evict = 3 : i32, isVolatile = true}}> : ({BLOCK}) -> {TILE}"""


STORE = f"""
    "tt.store"(%b, %x) <{{boundaryCheck = array<i32: 0>, cache = 1 : i32, evict = 2 : i32}}>
        : ({BLOCK}, {TILE}) -> ()"""
USE = "\n    use %i : i32"


def test_without_a_check_there_is_no_mask(check):
    checks = """
        // CHECK-NOT: make_tensor_ptr
        // CHECK:     %[[Q:.*]] = "tt.addptr"(%p, {{.*}}) : (!tt.ptr<f16>, i64) -> !tt.ptr<f16>
        // CHECK:     "tt.splat"({{.*}}) : (!tt.ptr<f16>) -> tensor<16x32x!tt.ptr<f16>>
        // CHECK-NOT: arith.cmpi
        // CHECK:     "tt.load"({{.*}}cache = 2 : i32, evict = 3 : i32, isVolatile = true{{.*}} : (tensor<16x32x!"""
    check([RewriteBlockPointers()], PARAMETERS, checks + MAKE + load("") + USE)


def test_a_size_of_32_bits_is_compared_so(check):
    checks = """
        // CHECK:     %[[M:.*]] = "arith.maxsi"(%m, {{.*}}) : (i32, i32) -> i32
        // CHECK:     %[[T:.*]] = "tt.splat"(%[[M]]) : (i32) -> tensor<16xi32>
        // CHECK:     "arith.cmpi"({{.*}}, %[[T]]) <{predicate = 6 : i64}>
        // CHECK-NOT: arith.cmpi
        // CHECK:     tensor<16x32xi1>, tensor<16x32xf16>) -> tensor<16x32xf16>"""
    check([RewriteBlockPointers()], PARAMETERS, checks + MAKE + load(": 0") + USE)


def test_one_of_64_bits_is_compared_so(check):
    checks = """
        // CHECK: %[[N:.*]] = "arith.maxsi"(%n, {{.*}}) : (i64, i64) -> i64
        // CHECK: "tt.splat"(%[[N]]) : (i64) -> tensor<32xi64>"""
    check([RewriteBlockPointers()], PARAMETERS, checks + MAKE + load(": 1") + USE)


def test_what_is_known_to_be_inside_is_not_compared(check):
    """Columns 4 to 36 of 40."""
    known = (
        MAKE.replace("%n, %s", "%columns, %s")
        .replace("%i, %j", "%i, %four")
        .replace(
            "%one =",
            """%four =
        "arith.constant"() <{value = 4 : i32}> : () -> i32
    %columns = "arith.constant"() <{value = 40 : i64}> : () -> i64
    %one =""",
            1,
        )
    )
    checks = "// CHECK-NOT: arith.cmpi\n"
    check([RewriteBlockPointers()], PARAMETERS, checks + known + load(": 1") + USE)
    outside = known.replace("40 : i64", "35 : i64").replace(
        "boundaryCheck = array<i32>", "boundaryCheck = array<i32: 1>"
    )
    check([RewriteBlockPointers()], PARAMETERS, "// CHECK: arith.cmpi" + outside + load(": 1") + USE)


def test_padding(check):
    zero, nan = "// CHECK: dense<0.000000e+00>", "// CHECK: value = 0x7e00 : f16"
    check([RewriteBlockPointers()], PARAMETERS, zero + MAKE + load(": 0, 1") + USE)
    check([RewriteBlockPointers()], PARAMETERS, nan + MAKE + load(": 0, 1", 2) + USE)


def test_stores(check):
    checks = """
        // CHECK: "tt.store"({{.*}}evict = 2 : i32{{.*}} : ({{.*}}, tensor<16x32xf16>, tensor<16x32xi1>)"""
    check([RewriteBlockPointers()], PARAMETERS, checks + MAKE + load("") + STORE + USE)
