"""Neighbouring ops become one, and only where that is right."""

from __future__ import annotations

import pytest

from deuteron.passes.tile.combine import Combine

M = "tensor<16x16xf32>"
DOT = f'"tt.dot"(%a, %b, %z) <{{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}}> : ({M}, {M}, {M}) -> {M}'
ZERO = f'%z = "arith.constant"() <{{value = dense<0.0> : {M}}}> : () -> {M}'
P = "tensor<4x!tt.ptr<f32>>"
LOAD = f""""tt.load"(%p, %m) <{{operandSegmentSizes = array<i32: 1, 1, 0>, boundaryCheck = array<i32>,
          cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : ({P}, tensor<4xi1>) -> tensor<4xf32>"""


@pytest.mark.parametrize("operands", ["%d, %c", "%c, %d"])
def test_a_dot_takes_what_is_added_to_it(check, operands):
    check(
        [Combine()],
        f"%a: {M}, %b: {M}, %c: {M}",
        f"""
        // CHECK-NOT: arith.addf
        // CHECK:     %r = "tt.dot"(%a, %b, %c) <{{inputPrecision = 2 : i32
        // CHECK-SAME: loc("k.py":8:9)
        // CHECK-NOT: tt.dot
        // CHECK:     "tt.print"(%r)
        {ZERO}
        %d = {DOT} loc("k.py":8:9)
        %r = "arith.addf"({operands}) : ({M}, {M}) -> {M} loc("k.py":9:1)
        use %r : {M}""",
        locations=True,
    )


def test_a_dot_with_another_use_stays(check):
    check(
        [Combine()],
        f"%a: {M}, %b: {M}, %c: {M}",
        f"""
        // CHECK: "tt.dot"(%a, %b, %z)
        // CHECK: "arith.addf"(%d, %c)
        {ZERO}
        %d = {DOT}
        %r = "arith.addf"(%d, %c) : ({M}, {M}) -> {M}
        use %r : {M}
        use %d : {M}""",
    )


def test_a_dot_does_not_move_into_a_loop(check):
    check(
        [Combine()],
        f"%a: {M}, %b: {M}, %c: {M}, %n: i32",
        f"""
        // CHECK: "tt.dot"(%a, %b, %z)
        // CHECK: scf.for
        // CHECK: arith.addf
        {ZERO}
        %d = {DOT}
        %r = "scf.for"(%n, %n, %n, %c) ({{
        ^bb1(%i: i32, %acc: {M}):
          %s = "arith.addf"(%acc, %d) : ({M}, {M}) -> {M}
          "scf.yield"(%s) : ({M}) -> ()
        }}) : (i32, i32, i32, {M}) -> {M}
        use %r : {M}""",
    )


def test_a_select_by_the_mask_of_a_load_is_its_other(check):
    check(
        [Combine()],
        f"%p: {P}, %m: tensor<4xi1>",
        f"""
        // CHECK:      [[C:%.*]] = "arith.constant"() <{{value = dense<1.000000e+00>
        // CHECK-NEXT: "tt.load"(%p, %m, [[C]])
        // CHECK-NOT:  arith.select
        // CHECK:      "tt.print"
        %v = {LOAD}
        %one = "arith.constant"() <{{value = dense<1.0> : tensor<4xf32>}}> : () -> tensor<4xf32>
        %r = "arith.select"(%m, %v, %one) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        use %r : tensor<4xf32>""",
    )


def test_a_select_by_another_mask_stays(check):
    check(
        [Combine()],
        f"%p: {P}, %m: tensor<4xi1>, %n: tensor<4xi1>, %o: tensor<4xf32>",
        f"""
        // CHECK: arith.select
        %v = {LOAD}
        %r = "arith.select"(%n, %v, %o) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        use %r : tensor<4xf32>""",
    )


def test_a_select_of_what_comes_after_the_load_stays(check):
    check(
        [Combine()],
        f"%p: {P}, %m: tensor<4xi1>",
        f"""
        // CHECK: arith.select
        %v = {LOAD}
        %o = {LOAD.replace("%m", "%m")}
        %r = "arith.select"(%m, %v, %o) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        use %r : tensor<4xf32>""",
    )


@pytest.mark.parametrize("other", ["%carried", "%computed"])
def test_a_select_of_what_a_loop_behind_the_load_makes_stays(check, other):
    check(
        [Combine()],
        f"%p: {P}, %m: tensor<4xi1>, %n: i32, %o: tensor<4xf32>",
        f"""
        // CHECK: "tt.load"(%p, %m)
        // CHECK: arith.select
        %v = {LOAD}
        %sum = "scf.for"(%n, %n, %n, %o) ({{
        ^bb1(%i: i32, %carried: tensor<4xf32>):
          %computed = "arith.negf"(%carried) : (tensor<4xf32>) -> tensor<4xf32>
          %r = "arith.select"(%m, %v, {other}) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          "scf.yield"(%r) : (tensor<4xf32>) -> ()
        }}) : (i32, i32, i32, tensor<4xf32>) -> tensor<4xf32>
        use %sum : tensor<4xf32>""",
    )


def test_a_select_in_a_loop_of_what_comes_before_the_load_is_its_other(check):
    check(
        [Combine()],
        f"%p: {P}, %m: tensor<4xi1>, %n: i32, %o: tensor<4xf32>",
        f"""
        // CHECK:     "tt.load"(%p, %m, %o)
        // CHECK-NOT: arith.select
        %v = {LOAD}
        %sum = "scf.for"(%n, %n, %n, %o) ({{
        ^bb1(%i: i32, %carried: tensor<4xf32>):
          %r = "arith.select"(%m, %v, %o) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %s = "arith.addf"(%carried, %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          "scf.yield"(%s) : (tensor<4xf32>) -> ()
        }}) : (i32, i32, i32, tensor<4xf32>) -> tensor<4xf32>
        use %sum : tensor<4xf32>""",
    )


def test_addptr_of_splats_is_scalar(check):
    check(
        [Combine()],
        "%x: !tt.ptr<f32>, %i: i32",
        f"""
        // CHECK: [[A:%.*]] = "tt.addptr"(%x, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
        // CHECK: %q = "tt.splat"([[A]])
        %p = "tt.splat"(%x) : (!tt.ptr<f32>) -> {P}
        %o = "tt.splat"(%i) : (i32) -> tensor<4xi32>
        %q = "tt.addptr"(%p, %o) : ({P}, tensor<4xi32>) -> {P}
        use %q : {P}""",
    )


@pytest.mark.parametrize(("first", "second", "is_one"), [(5, 7, True), (2147483647, 1, False)])
def test_constant_offsets_are_added_unless_they_overflow(check, first, second, is_one):
    check(
        [Combine()],
        f"%p: {P}",
        f"""
        // CHECK{"" if is_one else "-NOT"}: value = dense<{first + second}>
        %i = "arith.constant"() <{{value = dense<{first}> : tensor<4xi32>}}> : () -> tensor<4xi32>
        %j = "arith.constant"() <{{value = dense<{second}> : tensor<4xi32>}}> : () -> tensor<4xi32>
        %q = "tt.addptr"(%p, %i) : ({P}, tensor<4xi32>) -> {P}
        %r = "tt.addptr"(%q, %j) : ({P}, tensor<4xi32>) -> {P}
        use %r : {P}""",
    )


def test_a_pointer_of_which_something_is_promised_stays(check):
    check(
        [Combine()],
        "%p: !tt.ptr<f32>, %i: i64, %j: i64, %k: i64",
        """
        // CHECK: %[[Q:.*]] = "tt.addptr"(%p, %{{.*}}) {tt.divisibility = dense<16> : tensor<1xi32>}
        // CHECK: "tt.addptr"(%[[Q]], %k)
        %o = "tt.addptr"(%p, %i) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
        %q = "tt.addptr"(%o, %j) {tt.divisibility = dense<16> : tensor<1xi32>} : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
        %r = "tt.addptr"(%q, %k) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
        use %r : !tt.ptr<f32>""",
    )


@pytest.mark.parametrize(("type", "op"), [("i64", "arith.addi"), ("i32", '"tt.addptr"(%q, %j)')])
def test_only_wide_scalar_offsets_are_added(check, type, op):
    check(
        [Combine()],
        f"%p: !tt.ptr<f32>, %i: {type}, %j: {type}",
        f"""
        // CHECK: {op}
        %q = "tt.addptr"(%p, %i) : (!tt.ptr<f32>, {type}) -> !tt.ptr<f32>
        %r = "tt.addptr"(%q, %j) : (!tt.ptr<f32>, {type}) -> !tt.ptr<f32>
        use %r : !tt.ptr<f32>""",
    )


def reduced(condition: str, chosen: str) -> str:
    return f"""
        %r = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{
        ^bb1(%a: f32, %b: f32):
          %g = arith.cmpf ogt, %a, %b : f32
          %l = arith.cmpf olt, %a, %b : f32
          %n = arith.cmpf une, %a, %a : f32
          %m = arith.cmpf une, %b, %b : f32
          %c = "arith.ori"({condition}) : (i1, i1) -> i1
          %y = "arith.select"(%c, {chosen}) : (i1, f32, f32) -> f32
          "tt.reduce.return"(%y) : (f32) -> ()
        }}) : (tensor<16xf32>) -> f32
        use %r : f32"""


@pytest.mark.parametrize(
    ("condition", "chosen", "found"),
    [
        ("%g, %n", "%a, %b", "arith.maximumf"),
        ("%n, %l", "%a, %b", "arith.minimumf"),
        ("%g, %m", "%a, %b", "arith.select"),  # of NaN, second
        ("%g, %n", "%b, %a", "arith.select"),  # a minimum but for NaN
        ("%g, %l", "%a, %b", "arith.select"),
    ],
)
def test_a_reduction_that_compares_and_keeps_nan_is_by_maximum(check, condition, chosen, found):
    check([Combine()], "%x: tensor<16xf32>", f'// CHECK: %y = "{found}"' + reduced(condition, chosen))


def test_a_comparison_that_keeps_nan_stays_where_zeros_have_an_order(check):
    check(
        [Combine()],
        "%a: f32, %b: f32",
        """
        // CHECK: arith.select
        %g = arith.cmpf ogt, %a, %b : f32
        %n = arith.cmpf une, %a, %a : f32
        %c = "arith.ori"(%g, %n) : (i1, i1) -> i1
        %y = "arith.select"(%c, %a, %b) : (i1, f32, f32) -> f32
        use %y : f32""",
    )


@pytest.mark.parametrize(("widened", "is_combined"), [("arith.extui", True), ("arith.extsi", False)])
def test_the_difference_of_two_bools_is_one_of_floats(check, widened, is_combined):
    check(
        [Combine()],
        "%a: i1, %b: i1",
        f"""
        // CHECK: {"arith.subf" if is_combined else "arith.sitofp"}
        %x = "{widened}"(%a) : (i1) -> i8
        %y = "{widened}"(%b) : (i1) -> i8
        %d = "arith.subi"(%x, %y) : (i8, i8) -> i8
        %f = "arith.sitofp"(%d) : (i8) -> f32
        use %f : f32""",
    )
