"""Reductions of pairs become exchanges, whatever they are spelled like, and only where that is the same."""

from __future__ import annotations

import pytest

from deuteron.passes.tile.exchange_pairs import ExchangePairs

X, P, H = "tensor<16xi32>", "tensor<4x2x2xi32>", "tensor<4x2xi32>"
PAIRS = f'%y = "tt.reshape"(%x) : ({X}) -> {P}'
SIDES = """
    %i = "tt.make_range"() <{start = 0 : i32, end = 2 : i32}> : () -> tensor<2xi32>
    %j = "tt.expand_dims"(%i) <{axis = 0 : i32}> : (tensor<2xi32>) -> tensor<1x2xi32>
    %k = "tt.expand_dims"(%j) <{axis = 2 : i32}> : (tensor<1x2xi32>) -> tensor<1x2x1xi32>
    %right = "tt.broadcast"(%k) : (tensor<1x2x1xi32>) -> tensor<4x2x2xi32>
    %one = "arith.constant"() <{value = dense<1> : tensor<4x2x2xi32>}> : () -> tensor<4x2x2xi32>
    %left = "arith.subi"(%one, %right) : (tensor<4x2x2xi32>, tensor<4x2x2xi32>) -> tensor<4x2x2xi32>"""


def reduced(name: str, source: str, combine: str, type: str = "i32") -> str:
    """The sum (or what `combine` makes) of each pair, repeated."""
    p, h, e = (shape.replace("i32", type) for shape in (P, H, "tensor<4x1x2xi32>"))
    return f"""
    {name}_s = "tt.reduce"({source}) <{{axis = 1 : i32}}> ({{
    ^bb0(%a: {type}, %b: {type}):
      {name}_c = "arith.{combine}"(%a, %b) : ({type}, {type}) -> {type}
      "tt.reduce.return"({name}_c) : ({type}) -> ()
    }}) : ({p}) -> {h}
    {name}_e = "tt.expand_dims"({name}_s) <{{axis = 1 : i32}}> : ({h}) -> {e}
    {name} = "tt.broadcast"({name}_e) : ({e}) -> {p}"""


def test_the_exclusive_or_of_a_pair_without_the_element_is_its_partner(check):
    check(
        [ExchangePairs()],
        f"%x: {X}",
        f"""
        // CHECK-NOT: tt.reduce
        // CHECK:     %[[TWO:.*]] = "arith.constant"() <{{value = dense<2> : tensor<16xi32>}}>
        // CHECK:     %[[PLACE:.*]] = "arith.xori"(%{{{{.*}}}}, %[[TWO]])
        // CHECK:     %[[PARTNER:.*]] = "tt.gather"(%x, %[[PLACE]]) <{{axis = 0 : i32}}>
        // CHECK-NOT: arith.xori
        // CHECK:     "tt.print"(%[[PARTNER]])
        {PAIRS}
        {reduced("%both", "%y", "xori")}
        %z = "arith.xori"(%y, %both) : ({P}, {P}) -> {P}
        %r = "tt.reshape"(%z) : ({P}) -> {X}
        use %r : {X}""",
    )


@pytest.mark.parametrize("side, order", [("left", "%[[PARTNER]], %x"), ("right", "%x, %[[PARTNER]]")])
@pytest.mark.parametrize("combine", ["addi", "ori", "xori"])
def test_a_sum_of_what_is_0_on_one_side_is_a_choice(check, side, order, combine):
    check(
        [ExchangePairs()],
        f"%x: {X}",
        f"""
        // CHECK-NOT: tt.reduce
        // CHECK:     %[[PARTNER:.*]] = "tt.gather"(%x
        // CHECK:     %[[BIT:.*]] = "arith.cmpi"
        // CHECK:     %[[CHOICE:.*]] = "arith.select"(%[[BIT]], {order})
        // CHECK:     "tt.print"(%[[CHOICE]])
        {PAIRS}
        {SIDES}
        %m = "arith.muli"(%y, %{side}) : ({P}, {P}) -> {P}
        {reduced("%s", "%m", combine)}
        %r = "tt.reshape"(%s) : ({P}) -> {X}
        use %r : {X}""",
    )


def test_a_conditional_exchange_is_a_choice(check):
    check(
        [ExchangePairs()],
        f"%x: {X}, %cond: tensor<16xi1>",
        f"""
        // CHECK-NOT: tt.reduce
        // CHECK:     %[[PARTNER:.*]] = "tt.gather"(%x
        // CHECK:     %[[NEW:.*]] = "arith.select"(%cond, %[[PARTNER]], %x)
        // CHECK:     "tt.print"(%[[NEW]])
        {PAIRS}
        {SIDES}
        %ml = "arith.muli"(%y, %left) : ({P}, {P}) -> {P}
        %mr = "arith.muli"(%right, %y) : ({P}, {P}) -> {P}
        {reduced("%l", "%ml", "addi")}
        {reduced("%r", "%mr", "addi")}
        %lx = "tt.reshape"(%l) : ({P}) -> {X}
        %rx = "tt.reshape"(%r) : ({P}) -> {X}
        %d = "arith.xori"(%lx, %rx) : ({X}, {X}) -> {X}
        %zero = "arith.constant"() <{{value = dense<0> : {X}}}> : () -> {X}
        %e = "arith.select"(%cond, %d, %zero) : (tensor<16xi1>, {X}, {X}) -> {X}
        %new = "arith.xori"(%x, %e) : ({X}, {X}) -> {X}
        use %new : {X}""",
    )


def test_a_sum_of_floats_stays_a_sum(check):
    f = "tensor<4x2x2xf32>"
    add = reduced("%s", "%y", "addf", "f32").replace("(%a, %b) :", "(%a, %b) <{fastmath = #arith.fastmath<none>}> :")
    check(
        [ExchangePairs()],
        f"%y: {f}",
        f"""
        // CHECK: %[[PARTNER:.*]] = "tt.gather"(%y, %{{{{.*}}}}) <{{axis = 1 : i32}}>
        // CHECK: %[[SUM:.*]] = "arith.addf"(%y, %[[PARTNER]]) <{{fastmath = #arith.fastmath<none>}}>
        // CHECK: "tt.print"(%[[SUM]])
        {add}
        use %s : {f}""",
    )


def test_of_a_product_the_factor_is_exchanged_that_is_not_known_by_its_place(check):
    f, flags = "tensor<4x2x2xf32>", "<{fastmath = #arith.fastmath<none>}>"
    add = reduced("%s", "%m", "addf", "f32").replace("(%a, %b) :", f"(%a, %b) {flags} :")
    check(
        [ExchangePairs()],
        "%x: tensor<16xf32>",
        f"""
        // CHECK-NOT: tt.reduce
        // CHECK:     %[[OWN:.*]] = "arith.mulf"(%x, %[[SIDE:.*]])
        // CHECK:     %[[PARTNER:.*]] = "tt.gather"(%x
        // CHECK:     %[[OTHER:.*]] = "arith.mulf"(%[[PARTNER]], %[[OTHER_SIDE:.*]])
        // CHECK:     %[[SUM:.*]] = "arith.addf"(%[[OWN]], %[[OTHER]])
        // CHECK:     "tt.print"(%[[SUM]])
        {PAIRS.replace("i32", "f32")}
        {SIDES}
        %w = "arith.sitofp"(%left) : ({P}) -> {f}
        %m = "arith.mulf"(%y, %w) {flags} : ({f}, {f}) -> {f}
        {add}
        %r = "tt.reshape"(%s) : ({f}) -> tensor<16xf32>
        use %r : tensor<16xf32>""",
    )


@pytest.mark.parametrize("combine", ["subi", "shli"])
def test_what_does_not_commute_stays(check, combine):
    check(
        [ExchangePairs()],
        f"%y: {P}",
        f"""
        // CHECK:     tt.reduce
        // CHECK-NOT: tt.gather
        {reduced("%s", "%y", combine)}
        use %s : {P}""",
    )


def test_what_is_made_in_a_branch_is_not_used_after_it(check):
    body = f"""
        // CHECK: scf.if
        // CHECK: tt.gather
        // CHECK: scf.yield
        // CHECK: tt.gather
        // CHECK: "tt.print"
        "scf.if"(%c) ({{
          {reduced("%s", "%y", "addi")}
          use %s : {P}
          "scf.yield"() : () -> ()
        }}, {{
          "scf.yield"() : () -> ()
        }}) : (i1) -> ()
        {reduced("%t", "%y", "addi")}
        use %t : {P}"""
    check([ExchangePairs()], f"%y: {P}, %c: i1", body)


def test_what_is_made_in_one_branch_is_not_used_in_the_other(check):
    branch = f"""{{
          {PAIRS}
          {reduced("%s", "%y", "addi")}
          use %s : {P}
          "scf.yield"() : () -> ()
        }}"""
    body = f"""
        // CHECK: tt.make_range
        // CHECK: tt.gather
        // CHECK: scf.yield
        // CHECK: tt.make_range
        // CHECK: tt.gather
        "scf.if"(%c) ({branch}, {branch.replace("%s", "%t").replace("%y", "%z")}) : (i1) -> ()"""
    check([ExchangePairs()], f"%x: {X}, %c: i1", body)


def test_a_reshaped_coordinate_is_computed_in_the_new_shape(check):
    check(
        [ExchangePairs()],
        "%n: i32",
        """
        // CHECK-NOT: tt.reshape
        // CHECK:     arith.shrui
        // CHECK:     %[[R:.*]] = "arith.xori"
        // CHECK-NOT: tt.reshape
        // CHECK:     "tt.print"(%[[R]])
        %i = "tt.make_range"() <{start = 0 : i32, end = 2 : i32}> : () -> tensor<2xi32>
        %j = "tt.expand_dims"(%i) <{axis = 1 : i32}> : (tensor<2xi32>) -> tensor<2x1xi32>
        %b = "tt.broadcast"(%j) : (tensor<2x1xi32>) -> tensor<2x8xi32>
        %r = "tt.reshape"(%b) : (tensor<2x8xi32>) -> tensor<16xi32>
        use %r : tensor<16xi32>""",
    )
