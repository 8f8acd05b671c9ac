"""Descriptors and block pointers in loops and branches: what is carried instead of them."""

from __future__ import annotations

import pytest

from deuteron.errors import CompilationError
from deuteron.passes.tile.carry_parts import CarryParts

PARAMETERS = "%p: !tt.ptr<f16>, %o: !tt.ptr<f16>, %m: i64, %s: i64, %i: i32, %n: i32, %c: i1, %size: i32"
BLOCK, DESC = "!tt.ptr<tensor<16xf16>>", "!tt.tensordesc<16xf16>"
ORDER = "<{order = array<i32: 0>}> : (!tt.ptr<f16>, i64, i64, i32)"


def make(name: str, base: str = "%p", size: str = "%m") -> str:
    return f'{name} = "tt.make_tensor_ptr"({base}, {size}, %s, %i) {ORDER} -> {BLOCK}\n'


def describe(name: str, base: str = "%p", padding: int = 1) -> str:
    return f"""{name}one = "arith.constant"() <{{value = 1 : i64}}> : () -> i64
        {name} = "tt.make_tensor_descriptor"({base}, %size, {name}one) <{{padding = {padding} : i32,
            operandSegmentSizes = array<i32: 1, 1, 1>}}> : (!tt.ptr<f16>, i32, i64) -> {DESC}\n"""


LOAD = f"""%x = "tt.load"(%b) <{{operandSegmentSizes = array<i32: 1, 0, 0>, boundaryCheck = array<i32: 0>,
    cache = 1 : i32, evict = 1 : i32, isVolatile = false}}> : ({BLOCK}) -> tensor<16xf16>
    use %x : tensor<16xf16>
    """


def test_a_loop_carries_the_offset_alone(check):
    checks = """
        // CHECK-NOT:  tt.advance
        // CHECK:      "scf.for"(%n, %n, %n, %i) ({
        // CHECK-NEXT: ^bb{{.*}}(%{{.*}}: i32, %[[O:.*]]: i32):
        // CHECK:      "tt.make_tensor_ptr"(%p, %m, %s, %[[O]])
        // CHECK:      %[[K:.*]] = "arith.addi"(%[[O]], %n)
        // CHECK:      "scf.yield"(%[[K]]) : (i32) -> ()"""
    body = f"""{make("%a")}
        %r = "scf.for"(%n, %n, %n, %a) ({{
        ^bb0(%k: i32, %b: {BLOCK}):
          {LOAD}
          %d = "tt.advance"(%b, %n) : ({BLOCK}, i32) -> {BLOCK}
          "scf.yield"(%d) : ({BLOCK}) -> ()
        }}) : (i32, i32, i32, {BLOCK}) -> {BLOCK}
        use %n : i32"""
    check([CarryParts()], PARAMETERS, f"{checks}\n{body}")


def test_a_while_carries_what_changes(check):
    checks = """
        // CHECK:      "scf.while"(%i) ({
        // CHECK:      "scf.condition"(%c, %{{.*}}) : (i1, i32) -> ()
        // CHECK:      ^bb{{.*}}(%[[O:.*]]: i32):
        // CHECK:      "tt.make_tensor_ptr"(%p, %m, %s, %[[O]])"""
    body = f"""{make("%a")}
        %r:2 = "scf.while"(%n, %a) ({{
        ^bb0(%k: i32, %e: {BLOCK}):
          "scf.condition"(%c, %k, %e) : (i1, i32, {BLOCK}) -> ()
        }}, {{
        ^bb1(%k2: i32, %b: {BLOCK}):
          {LOAD}
          %d = "tt.advance"(%b, %n) : ({BLOCK}, i32) -> {BLOCK}
          "scf.yield"(%n, %d) : (i32, {BLOCK}) -> ()
        }}) : (i32, {BLOCK}) -> (i32, {BLOCK})
        use %n : i32"""
    check([CarryParts()], PARAMETERS, f"{checks}\n{body}")


def test_a_branch_gives_what_its_sides_disagree_on(check):
    checks = """
        // CHECK: %[[Q:.*]] = "scf.if"(%c) ({
        // CHECK: "scf.yield"(%p) : (!tt.ptr<f16>) -> ()
        // CHECK: "scf.yield"(%o) : (!tt.ptr<f16>) -> ()
        // CHECK: "tt.make_tensor_ptr"(%[[Q]], %m, %s, %i)"""
    body = f"""%b = "scf.if"(%c) ({{
          {make("%a")} "scf.yield"(%a) : ({BLOCK}) -> ()
        }}, {{
          {make("%e", "%o")} "scf.yield"(%e) : ({BLOCK}) -> ()
        }}) : (i1) -> {BLOCK}
        {LOAD}
        use %n : i32"""
    check([CarryParts()], PARAMETERS, f"{checks}\n{body}")


def test_zeros_of_both_signs_are_not_alike(check):
    checks = """
        // CHECK:      "scf.for"(%n, %n, %n, %i, %zero)
        // CHECK:      "scf.yield"(%{{.*}}, %{{.*}}) : (i32, f32) -> ()
        // CHECK:      "scf.if"(%c)
        // CHECK:      "scf.yield"(%{{.*}}, %{{.*}}) : (i32, f32) -> ()
        // CHECK:      "scf.yield"(%{{.*}}, %{{.*}}) : (i32, f32) -> ()"""
    body = f"""{make("%a")}
        %zero = "arith.constant"() <{{value = 0.0 : f32}}> : () -> f32
        %minus = "arith.constant"() <{{value = -0.0 : f32}}> : () -> f32
        %r, %z = "scf.for"(%n, %n, %n, %a, %zero) ({{
        ^bb0(%k: i32, %b: {BLOCK}, %y: f32):
          %d = "tt.advance"(%b, %n) : ({BLOCK}, i32) -> {BLOCK}
          "scf.yield"(%d, %minus) : ({BLOCK}, f32) -> ()
        }}) : (i32, i32, i32, {BLOCK}, f32) -> ({BLOCK}, f32)
        %b, %w = "scf.if"(%c) ({{
          %e = "tt.advance"(%a, %n) : ({BLOCK}, i32) -> {BLOCK}
          "scf.yield"(%e, %zero) : ({BLOCK}, f32) -> ()
        }}, {{
          "scf.yield"(%a, %minus) : ({BLOCK}, f32) -> ()
        }}) : (i1) -> ({BLOCK}, f32)
        {LOAD}
        use %z : f32
        use %w : f32"""
    check([CarryParts()], PARAMETERS, f"{checks}\n{body}")


def test_a_selection(check):
    checks = """
        // CHECK: %[[M:.*]] = "arith.select"(%c, %m, %s)
        // CHECK: "tt.make_tensor_ptr"(%p, %[[M]], %s, %i)"""
    body = f"""{make("%a")} {make("%e", size="%s")}
        %b = "arith.select"(%c, %a, %e) : (i1, {BLOCK}, {BLOCK}) -> {BLOCK}
        {LOAD}
        use %n : i32"""
    check([CarryParts()], PARAMETERS, f"{checks}\n{body}")


def test_offsets_that_meet_have_the_same_width(check):
    checks = """
        // CHECK: %[[A:.*]] = "arith.extsi"(%i)
        // CHECK: "tt.make_tensor_ptr"(%p, %m, %s, %[[A]]) {{.*}} i64) -> !tt.ptr<tensor<16xf16>>
        // CHECK: "arith.addi"(%[[A]], %m)"""
    body = f"""{make("%a")}
        %b = "tt.advance"(%a, %m) : ({BLOCK}, i64) -> {BLOCK}
        {LOAD}
        use %n : i32"""
    check([CarryParts()], PARAMETERS, f"{checks}\n{body}")


SWAP = f"""
    %r:2 = "scf.for"(%n, %n, %n, %a, %e) ({{
    ^bb0(%k: i32, %b: {DESC}, %d: {DESC}):
      %x = "tt.descriptor_load"(%b, %k) <{{cache = 1 : i32, evict = 1 : i32}}> : ({DESC}, i32) -> tensor<16xf16>
      use %x : tensor<16xf16>
      "scf.yield"(%d, %b) : ({DESC}, {DESC}) -> ()
    }}) : (i32, i32, i32, {DESC}, {DESC}) -> ({DESC}, {DESC})
    use %n : i32"""


def test_descriptors_that_change_places(check):
    """Both have the size of before the loop: that is the same value. The last stride is the constant 1."""
    checks = """
        // CHECK: "scf.for"(%n, %n, %n, %p, {{.*}}%o
        // CHECK: %[[ONE:.*]] = "arith.constant"() <{value = 1 : i64}>
        // CHECK: "tt.make_tensor_descriptor"({{.*}}, %[[ONE]]) <{{.*}}padding = 2 : i32"""
    check([CarryParts()], PARAMETERS, f"{checks}\n{describe('%a', padding=2)}{describe('%e', '%o', padding=2)}{SWAP}")


def test_paddings_that_meet_are_the_same(check):
    with pytest.raises(CompilationError, match="Give both the same padding_option"):
        check([CarryParts()], PARAMETERS, f"{describe('%a')}{describe('%e', '%o', padding=2)}{SWAP}")
