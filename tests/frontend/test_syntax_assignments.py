"""Assignments: what becomes a Tensor, what stays known, and which names the IR shows."""

from __future__ import annotations

import deuteron.language as tl
from deuteron.language.functions.function import Function as jit


def test_number_takes_a_type_when_it_is_assigned(check_ir):
    @jit
    def kernel(p):
        # CHECK: %scale = "arith.constant"() <{value = 5.000000e-01 : f32}>
        # CHECK: "arith.extf"(%{{.*}}) : (tensor<8xf16>) -> tensor<8xf32>
        x = tl.zeros([8], tl.float16)
        scale = 0.5
        y = x * scale

    check_ir(kernel, "*fp32")


def test_number_in_an_expression_takes_the_type_of_the_tile(check_ir):
    @jit
    def kernel(SCALE: tl.constexpr):
        # CHECK: "arith.mulf"({{.*}}tensor<8xf16>
        x = tl.zeros([8], tl.float16)
        y = x * SCALE

    check_ir(kernel, SCALE=0.5)


def test_annotated_constexpr_stays_known(check_ir):
    @jit
    def kernel(BLOCK: tl.constexpr):
        # CHECK: end = 16 : i32
        # CHECK: end = 8 : i32
        half: tl.constexpr = BLOCK // 2
        quarter: tl.constexpr = half // 2
        x = tl.arange(0, half)
        y = tl.arange(0, quarter)

    check_ir(kernel, BLOCK=32)


def test_tuple_assignment_swaps(check_ir):
    @jit
    def kernel(a, b):
        # CHECK: %c = "arith.subi"(%b, %a)
        a, b = b, a
        c = a - b

    check_ir(kernel, "i32 i32")


def test_nested_tuples_and_chained_targets(check_ir):
    @jit
    def kernel(a, b):
        # CHECK: %z = "arith.subi"(%b, %a)
        (x, (y,)) = pair = (a, (b,))
        z = pair[1][0] - x

    check_ir(kernel, "i32 i32")


def test_augmented_assignment(check_ir):
    @jit
    def kernel(n):
        # CHECK: %x = "arith.addi"(%n, %n)
        # CHECK: %x_1 = "arith.shli"(%x, %
        x = n + n
        x <<= 2

    check_ir(kernel, "i32")


def test_first_name_of_a_value_is_kept(check_ir):
    @jit
    def kernel(n):
        # CHECK: %first = "arith.addi"(%n, %n)
        # CHECK: %third = "arith.muli"(%first, %first)
        first = n + n
        second = first
        third = second * second

    check_ir(kernel, "i32")


def test_named_expression(check_ir):
    @jit
    def kernel(n):
        # CHECK: %x = "arith.addi"(%n, %n)
        # CHECK: %y = "arith.muli"(%x, %x)
        y = (x := n + n) * x

    check_ir(kernel, "i32")
