"""Tiles whose numbers are known; that those of arithmetic are right is tested in test_index_bits.py."""

from __future__ import annotations

import numpy as np
from ir_text import parse_kernel

from deuteron.analysis.addresses.known_elements import MAX_ELEMENTS, known_elements
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.debug import PrintOp

T = "tensor<16xi32>"
RANGE = f'%i = "tt.make_range"() <{{start = 3 : i32, end = 19 : i32}}> : () -> {T}\n'


def elements_of(body: str):
    module = parse_kernel(f"%n: i32, %x: {T}", body)
    (shown,) = [op for op in nested_ops(module) if isinstance(op, PrintOp)]
    return known_elements(shown.operands[0])


def test_shapes_move_elements():
    found = elements_of(
        RANGE
        + """
        %r = "tt.reshape"(%i) : (tensor<16xi32>) -> tensor<2x8xi32>
        %t = "tt.trans"(%r) <{order = array<i32: 1, 0>}> : (tensor<2x8xi32>) -> tensor<8x2xi32>
        %e = "tt.expand_dims"(%t) <{axis = 1 : i32}> : (tensor<8x2xi32>) -> tensor<8x1x2xi32>
        %b = "tt.broadcast"(%e) : (tensor<8x1x2xi32>) -> tensor<8x4x2xi32>
        use %b : tensor<8x4x2xi32>"""
    )
    expected = np.broadcast_to(np.arange(3, 19).reshape(2, 8).T[:, None], (8, 4, 2))
    assert found == tuple(expected.ravel().tolist())


def test_a_choice_of_shifted_numbers():
    found = elements_of(
        RANGE
        + f"""
        %c = "arith.constant"() <{{value = dense<5> : {T}}}> : () -> {T}
        %d = "arith.subi"(%i, %c) : ({T}, {T}) -> {T}
        %m = "arith.cmpi"(%i, %c) <{{predicate = 2 : i64}}> : ({T}, {T}) -> tensor<16xi1>
        %s = "arith.select"(%m, %c, %d) : (tensor<16xi1>, {T}, {T}) -> {T}
        use %s : {T}"""
    )
    assert found == (5, 5, *range(14))


def test_what_an_argument_says_is_not_known():
    assert elements_of(f"use %x : {T}") is None
    assert elements_of(RANGE + f'%y = "arith.addi"(%i, %x) : ({T}, {T}) -> {T}\nuse %y : {T}') is None
    assert elements_of(f'%y = "tt.splat"(%n) : (i32) -> {T}\nuse %y : {T}') is None


def test_long_tiles_are_not_looked_at():
    length = 2 * MAX_ELEMENTS
    numbers = f'%i = "tt.make_range"() <{{start = 0 : i32, end = {length} : i32}}> : () -> tensor<{length}xi32>'
    assert elements_of(f"{numbers}\nuse %i : tensor<{length}xi32>") is None
