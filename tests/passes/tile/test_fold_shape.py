"""What is one scalar everywhere is a splat in any shape; shape ops that change nothing go."""

from __future__ import annotations

import pytest

from deuteron.passes.tile.fold import Fold

T = "tensor<4xf32>"


def test_expand_dims_and_broadcast_of_a_splat(check):
    check(
        [Fold()],
        "%x: f32",
        """
        // CHECK: %b = "tt.splat"(%x) : (f32) -> tensor<4x8xf32>
        // CHECK: "tt.print"(%b)
        %s = "tt.splat"(%x) : (f32) -> tensor<4xf32>
        %e = "tt.expand_dims"(%s) <{axis = 1 : i32}> : (tensor<4xf32>) -> tensor<4x1xf32>
        %b = "tt.broadcast"(%e) : (tensor<4x1xf32>) -> tensor<4x8xf32>
        use %b : tensor<4x8xf32>""",
    )


def test_trans_of_a_constant(check):
    check(
        [Fold()],
        "",
        """
        // CHECK: %t = "arith.constant"() <{value = dense<2.000000e+00> : tensor<8x4xf32>}>
        %c = "arith.constant"() <{value = 2.0 : f32}> : () -> f32
        %s = "tt.splat"(%c) : (f32) -> tensor<4x8xf32>
        %t = "tt.trans"(%s) <{order = array<i32: 1, 0>}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
        use %t : tensor<8x4xf32>""",
    )


def test_trans_of_trans(check):
    check(
        [Fold()],
        "%x: tensor<2x4x8xf32>",
        """
        // CHECK: "tt.trans"(%x) <{order = array<i32: 2, 1, 0>}> : (tensor<2x4x8xf32>) -> tensor<8x4x2xf32>
        // CHECK: "tt.print"(%b)
        %a = "tt.trans"(%x) <{order = array<i32: 1, 2, 0>}> : (tensor<2x4x8xf32>) -> tensor<4x8x2xf32>
        %b = "tt.trans"(%a) <{order = array<i32: 1, 0, 2>}> : (tensor<4x8x2xf32>) -> tensor<8x4x2xf32>
        use %b : tensor<8x4x2xf32>""",
    )


@pytest.mark.parametrize("op", ['"tt.broadcast"(%x)', '"tt.reshape"(%x)', '"tt.trans"(%x) <{order = array<i32: 0>}>'])
def test_what_keeps_the_shape_goes(check, op):
    check(
        [Fold()],
        f"%x: {T}",
        f"""
        // CHECK: "tt.print"(%x)
        %r = {op} : ({T}) -> {T}
        use %r : {T}""",
    )


def test_reshape_of_reshape_keeps_a_free_order(check):
    check(
        [Fold()],
        "%x: tensor<4x4xf32>",
        """
        // CHECK: %a = "tt.reshape"(%x)
        // CHECK: "tt.reshape"(%x)
        // CHECK: %c = "tt.reshape"(%x) <{allow_reorder
        // CHECK: "tt.reshape"(%c)
        %a = "tt.reshape"(%x) : (tensor<4x4xf32>) -> tensor<16xf32>
        %b = "tt.reshape"(%a) : (tensor<16xf32>) -> tensor<2x8xf32>
        use %b : tensor<2x8xf32>
        %c = "tt.reshape"(%x) <{allow_reorder}> : (tensor<4x4xf32>) -> tensor<16xf32>
        %d = "tt.reshape"(%c) : (tensor<16xf32>) -> tensor<2x8xf32>
        use %d : tensor<2x8xf32>""",
    )


def test_unsplat_of_a_splat(check):
    check(
        [Fold()],
        "%x: f32",
        """
        // CHECK: "tt.print"(%x)
        %s = "tt.splat"(%x) : (f32) -> tensor<1xf32>
        %r = "tt.unsplat"(%s) : (tensor<1xf32>) -> f32
        use %r : f32""",
    )
