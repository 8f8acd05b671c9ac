"""Constants are computed exactly, neutral operands are dropped, and nothing that is not exact is done."""

from __future__ import annotations

import pytest

from deuteron.passes.tile.fold import Fold


@pytest.mark.parametrize(
    ("op", "type", "lhs", "rhs", "expected"),
    [
        ("addi", "i32", "2147483647", "1", "-2147483648"),
        ("muli", "i8", "100", "3", "44"),
        ("subi", "i64", "-9223372036854775808", "1", "9223372036854775807"),
        ("divsi", "i32", "-7", "2", "-3"),
        ("remsi", "i32", "-7", "2", "-1"),
        ("divui", "i32", "-1", "2", "2147483647"),
        ("shli", "i32", "1", "31", "-2147483648"),
        ("shrui", "i32", "-1", "28", "15"),
        ("minui", "i32", "-1", "3", "3"),
        ("xori", "i1", "true", "true", "false"),
        ("addf", "f32", "16777216.0", "1.0", "0x4B800000"),
        ("addf", "f16", "2048.0", "1.0", "2.048000e+03"),
        ("mulf", "bf16", "1.0078125", "1.0078125", "1.015620e+00"),
        ("divf", "f32", "1.0", "0.0", "0x7f800000"),
        ("maxnumf", "f32", "0x7fc00000", "2.0", "2.000000e+00"),
    ],
)
def test_constants(check, op, type, lhs, rhs, expected):
    lhs, rhs = (value if value in ("true", "false") else f"{value} : {type}" for value in (lhs, rhs))
    check(
        [Fold()],
        "",
        f"""
        // CHECK:      %r = "arith.constant"() <{{value = {expected}
        // CHECK-NEXT: "tt.print"(%r)
        %a = "arith.constant"() <{{value = {lhs}}}> : () -> {type}
        %b = "arith.constant"() <{{value = {rhs}}}> : () -> {type}
        %r = "arith.{op}"(%a, %b) : ({type}, {type}) -> {type}
        use %r : {type}""",
    )


@pytest.mark.parametrize(
    ("op", "type", "value"),
    [
        ("addi", "i32", "0"),
        ("subi", "i32", "0"),
        ("muli", "i32", "1"),
        ("divsi", "i32", "1"),
        ("andi", "i32", "-1"),
        ("andi", "i1", "true"),
        ("ori", "i32", "0"),
        ("xori", "i32", "0"),
        ("shrsi", "i32", "0"),
        ("addf", "f32", "-0.0"),
        ("subf", "f32", "0.0"),
        ("mulf", "f32", "1.0"),
        ("divf", "f32", "1.0"),
        ("addi", "tensor<4xi32>", "dense<0>"),
        ("mulf", "tensor<4xf32>", "dense<1.0>"),
    ],
)
def test_neutral_operands(check, op, type, value):
    suffix = "" if value == "true" else f" : {type}"
    check(
        [Fold()],
        f"%x: {type}",
        f"""
        // CHECK-NOT: arith.{op}
        // CHECK:     "tt.print"(%x)
        %c = "arith.constant"() <{{value = {value}{suffix}}}> : () -> {type}
        %r = "arith.{op}"(%x, %c) : ({type}, {type}) -> {type}
        use %r : {type}""",
    )


@pytest.mark.parametrize(
    ("first", "second", "operands"),
    [("addi", "subi", "%x, %y"), ("addi", "subi", "%y, %x"), ("subi", "addi", "%x, %y")],
)
def test_what_is_added_and_subtracted(check, first, second, operands):
    """The last tap of a convolution is aligned as its first element is."""
    check(
        [Fold()],
        "%x: tensor<4xi32>",
        f"""
        // CHECK:     "tt.print"(%x)
        %y = "arith.constant"() <{{value = dense<3> : tensor<4xi32>}}> : () -> tensor<4xi32>
        %z = "arith.constant"() <{{value = dense<3> : tensor<4xi32>}}> : () -> tensor<4xi32>
        %s = "arith.{first}"({operands}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        %r = "arith.{second}"(%s, %z) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
        use %r : tensor<4xi32>""",
    )


def test_what_is_subtracted_of_is_not_what_was_added(check):
    check(
        [Fold()],
        "%x: i32, %y: i32",
        """
        // CHECK: %r = "arith.addi"(%s, %x)
        %s = "arith.subi"(%x, %y) : (i32, i32) -> i32
        %r = "arith.addi"(%s, %x) : (i32, i32) -> i32
        use %r : i32""",
    )


@pytest.mark.parametrize(
    ("op", "value"), [("addf", "0.0"), ("subf", "-0.0"), ("mulf", "0.0"), ("mulf", "2.0"), ("divf", "2.0")]
)
def test_what_is_not_exact_stays(check, op, value):
    check(
        [Fold()],
        "%x: f32",
        f"""
        // CHECK: %r = "arith.{op}"(%x, %c)
        %c = "arith.constant"() <{{value = {value} : f32}}> : () -> f32
        %r = "arith.{op}"(%x, %c) : (f32, f32) -> f32
        use %r : f32""",
    )


@pytest.mark.parametrize(("op", "value", "expected"), [("muli", 0, 0), ("andi", 0, 0), ("ori", -1, -1)])
def test_absorbing_operands(check, op, value, expected):
    check(
        [Fold()],
        "%x: i32",
        f"""
        // CHECK:     %c = "arith.constant"() <{{value = {expected} : i32
        // CHECK:     "tt.print"(%c)
        %c = "arith.constant"() <{{value = {value} : i32}}> : () -> i32
        %r = "arith.{op}"(%c, %x) : (i32, i32) -> i32
        use %r : i32""",
    )


def test_select_and_comparison_of_constants(check):
    check(
        [Fold()],
        "%x: f32, %y: f32",
        """
        // CHECK: "tt.print"(%y)
        %a = "arith.constant"() <{value = -1 : i32}> : () -> i32
        %b = "arith.constant"() <{value = 1 : i32}> : () -> i32
        %m = "arith.cmpi"(%a, %b) <{predicate = 6 : i64}> : (i32, i32) -> i1
        %r = "arith.select"(%m, %x, %y) : (i1, f32, f32) -> f32
        use %r : f32""",
    )


def test_casts_of_constants(check):
    check(
        [Fold()],
        "",
        """
        // CHECK: %w = "arith.constant"() <{value = 255 : i32
        // CHECK: %f = "arith.constant"() <{value = 2.550000e+02 : f32
        %a = "arith.constant"() <{value = -1 : i8}> : () -> i8
        %w = "arith.extui"(%a) : (i8) -> i32
        %f = "arith.sitofp"(%w) : (i32) -> f32
        use %f : f32""",
    )


def test_a_tile_of_nan_stays_an_op(check):
    check(
        [Fold()],
        "",
        """
        // CHECK: "arith.divf"
        %z = "arith.constant"() <{value = dense<0.0> : tensor<4xf32>}> : () -> tensor<4xf32>
        %r = "arith.divf"(%z, %z) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        use %r : tensor<4xf32>""",
    )


LOOP = """
    %lb = "arith.constant"() <{value = BEGIN : i32}> : () -> i32
    %ub = "arith.constant"() <{value = 512 : i32}> : () -> i32
    %st = "arith.constant"() <{value = 8 : i32}> : () -> i32
    %lim = "arith.constant"() <{value = LIMIT : i32}> : () -> i32
    %limits = "tt.splat"(%lim) : (i32) -> tensor<8xi32>
    %r = "tt.make_range"() <{start = 0 : i32, end = 8 : i32}> : () -> tensor<8xi32>
    "scf.for"(%lb, %ub, %st) ({
    ^bb1(%i: i32):
      %is = "tt.splat"(%i) : (i32) -> tensor<8xi32>
      %x = "arith.addi"(%is, %r) : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi32>
      %m = "arith.cmpi"(SIDES) <{predicate = PREDICATE : i64}> : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
      use %m : tensor<8xi1>
      "scf.yield"() : () -> ()
    }) : (i32, i32, i32) -> ()"""
EQ, NE, SLT, SLE, SGT, SGE, ULT = 0, 1, 2, 3, 4, 5, 6


@pytest.mark.parametrize(
    ("begin", "limit", "predicate", "sides", "expected"),
    [
        (0, 512, SLT, "%x, %limits", "true"),  # the last index is 504
        (0, 511, SLT, "%x, %limits", None),
        (0, 511, SLE, "%x, %limits", "true"),
        (0, 511, SGT, "%x, %limits", "false"),
        (0, 511, SGE, "%x, %limits", None),
        (0, 512, SGE, "%x, %limits", "false"),
        (0, 512, ULT, "%x, %limits", "true"),
        (0, 512, EQ, "%x, %limits", "false"),
        (0, 512, NE, "%x, %limits", "true"),
        (0, 512, SGT, "%limits, %x", "true"),
        (0, 512, SLT, "%limits, %x", "false"),
        (0, 0, SGE, "%x, %limits", "true"),
        (0, 0, SLT, "%x, %limits", "false"),
        (0, 0, SGT, "%x, %limits", None),
        (0, -1, SLT, "%x, %limits", None),
        (4, 512, SLT, "%x, %limits", None),  # the last index is 508
        (-8, 512, SLT, "%x, %limits", None),  # what may be negative is not known
    ],
)
def test_masks_that_are_always_on(check, begin, limit, predicate, sides, expected):
    loop = LOOP.replace("BEGIN", str(begin)).replace("LIMIT", str(limit)).replace("SIDES", sides)
    found = f'"arith.constant"() <{{value = dense<{expected}>' if expected else '"arith.cmpi"'
    check(
        [Fold()],
        "",
        f"""
        // CHECK: "scf.for"
        // CHECK: %m{{{{.*}}}} = {found}
        {loop.replace("PREDICATE", str(predicate))}""",
    )


@pytest.mark.parametrize(("axis", "limit"), [(0, 65536), (1, 65535), (1, 65536), (2, 65536), (1, 1 << 30)])
def test_a_grid_has_any_number_of_programs(check, axis, limit):
    """On the CPU along each of its axes."""
    check(
        [Fold()],
        "",
        f"""
        // CHECK: %m{{{{.*}}}} = "arith.cmpi"
        %p = "tt.get_program_id"() <{{axis = {axis} : i32}}> : () -> i32
        %limit = "arith.constant"() <{{value = {limit} : i32}}> : () -> i32
        %m = "arith.cmpi"(%p, %limit) <{{predicate = {SLT} : i64}}> : (i32, i32) -> i1
        use %m : i1""",
    )
