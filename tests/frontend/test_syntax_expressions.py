"""Expressions: operators, comparisons, subscripts, attributes, f-strings; what is known is computed in Python."""

from __future__ import annotations

import math
import warnings

import pytest

import deuteron.language as tl
from deuteron.language.functions.function import Function as jit


def test_known_operands_are_computed_in_python(check_ir):
    @jit
    def kernel(N: tl.constexpr):
        # CHECK: "tt.func"
        # CHECK-NEXT: %x = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}>
        # CHECK-NEXT: "tt.return"
        x = tl.arange(0, (N * 3 + 4) // 2 - (7 % 4) - 2**1 & ~0 if not N < 1 else -1)

    check_ir(kernel, N=13)


def test_each_operator_on_runtime_values(check_ir):
    @jit
    def kernel(a, b):
        # CHECK: %s = "arith.addi"
        # CHECK: %d = "arith.subi"
        # CHECK: %m = "arith.muli"
        # CHECK: %q = "arith.divsi"
        # CHECK: %r = "arith.remsi"
        # CHECK: %l = "arith.shli"
        # CHECK: %h = "arith.shrsi"
        # CHECK: %n = "arith.andi"
        # CHECK: %o = "arith.ori"
        # CHECK: %e = "arith.xori"
        # CHECK: %f = "arith.divf"
        s = a + b
        d = a - b
        m = a * b
        q = a // b
        r = a % b
        l = a << b  # noqa: E741
        h = a >> b
        n = a & b
        o = a | b
        e = a ^ b
        f = a / b

    check_ir(kernel, "i32 i32")


def test_number_on_either_side(check_ir):
    @jit
    def kernel(a):
        # CHECK: [[TWO:%.*]] = "arith.constant"() <{value = 2 : i32}>
        # CHECK: %x = "arith.subi"([[TWO]], %a)
        x = 2 - a

    check_ir(kernel, "i32")


def test_chained_comparison(check_ir):
    @jit
    def kernel(a, b):
        # CHECK: [[LEFT:%.*]] = "arith.cmpi"(%{{.*}}, %a) <{predicate = 2 : i64}>
        # CHECK: [[RIGHT:%.*]] = "arith.cmpi"(%a, %b) <{predicate = 3 : i64}>
        # CHECK: %x = "arith.andi"([[LEFT]], [[RIGHT]])
        x = 0 < a <= b

    check_ir(kernel, "i32 i32")


def test_chained_comparison_with_bits_in_parentheses(check_ir):
    @jit
    def kernel(a, b):
        # CHECK: [[BITS:%.*]] = "arith.andi"(%a, %b)
        # CHECK: "arith.cmpi"(%{{.*}}, [[BITS]]) <{predicate = 2 : i64}>
        # CHECK: [[MORE:%.*]] = "arith.ori"
        # CHECK: "arith.cmpi"({{.*}}, [[MORE]])
        x = 0 < (a & b) < 8
        y = 0 < ((a) | b) < 8

    check_ir(kernel, "i32 i32")


BARE = {
    "right": "a < b & (c < b)",
    "left": "(a < b) & c < b",
    "in parentheses of its own": "((a < b) & c < b)",
    "of several": "a < b & (c < b) & (c < a)",
    "a mask by its name": "a < b & m",
    "or": "a == b | (c < b)",
}
FENCED = {
    "as meant": "(a < b) & (c < b)",
    "as said": "a < (b & (c < b))",
    "as said on the left": "((a < b) & c) < b",
    "bits": "a & 1 == b",
    "bits of two": "0 < a & b",
    "truth values": "m == (a < b) & (c < b)",
    "a chain": "0 < (a & (c < b)) < 8",
}


def lower_comparison(load_source, lower, text: str) -> None:
    lower(load_source(f"@jit\ndef kernel(a, b, c):\n    m = c < 3\n    x = {text}\n").kernel, "i32 i32 i32")


@pytest.mark.parametrize("text", BARE.values(), ids=BARE)
def test_a_mask_that_python_joins_with_a_number(load_source, lower, text):
    with pytest.warns(UserWarning, match=r":5:\d+: To Python this compares with `.*`, as . goes before comparisons"):
        lower_comparison(load_source, lower, text)


@pytest.mark.parametrize("text", FENCED.values(), ids=FENCED)
def test_parentheses_say_what_is_joined(load_source, lower, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lower_comparison(load_source, lower, text)


def test_known_part_of_a_chain_is_dropped(check_ir):
    @jit
    def kernel(a, LOW: tl.constexpr):
        # CHECK: %x = "arith.cmpi"
        # CHECK-NOT: arith.andi
        x = 0 < LOW < a

    check_ir(kernel, "i32", LOW=3)


def test_and_of_numbers_takes_their_truth(check_ir):
    @jit
    def kernel(a, flag):
        # CHECK: [[A:%.*]] = "arith.cmpi"(%a, %{{.*}}) <{predicate = 1 : i64}>
        # CHECK: %x = "arith.andi"([[A]], %flag)
        x = a and flag

    check_ir(kernel, "i32 i1")


def test_known_operand_decides_without_the_rest(check_ir):
    @jit
    def kernel(flag, OFF: tl.constexpr):
        # CHECK-NOT: arith.andi
        # CHECK: end = 4 : i32
        if OFF and undefined:  # noqa: F821
            x = tl.arange(0, 8)
        if (not OFF) or undefined:  # noqa: F821
            y = tl.arange(0, 4)

    check_ir(kernel, "i1", OFF=False)


def test_known_operand_that_does_not_decide_is_dropped(check_ir):
    @jit
    def kernel(flag, ON: tl.constexpr):
        # CHECK: "scf.if"(%flag)
        # CHECK: "scf.if"(%flag)
        if ON and flag:
            tl.debug_barrier()
        if flag or not ON:
            tl.debug_barrier()

    check_ir(kernel, "i1", ON=True)


def test_known_operand_behind_a_number_takes_its_truth(check_ir):
    """As for two numbers of the program: not one of the operands, which would be `n` or 5 whatever `n` is."""

    @jit
    def kernel(n):
        # CHECK: [[TRUTH:%.*]] = "arith.cmpi"(%n, %{{.*}}) <{predicate = 1 : i64}>
        # CHECK: [[TRUE:%.*]] = "arith.constant"() <{value = true}>
        # CHECK: "tt.print"([[TRUE]], [[TRUTH]])
        tl.device_print("", n or 5, n and 5)

    check_ir(kernel, "i32")


def test_not_of_a_runtime_bool(check_ir):
    @jit
    def kernel(flag):
        # CHECK: "arith.xori"(%flag
        x = not flag

    check_ir(kernel, "i1")


def test_none_is_asked_for_at_compile_time(check_ir):
    @jit
    def kernel(p, MASK: tl.constexpr):
        # CHECK-NOT: scf.if
        # CHECK: end = 4
        if p is not None and MASK is None:
            x = tl.arange(0, 4)

    check_ir(kernel, "*fp32", MASK=None)


def test_membership_is_asked_for_at_compile_time(check_ir):
    @jit
    def kernel(KIND: tl.constexpr):
        # CHECK: end = 4
        # CHECK-NOT: end = 8
        if KIND in ("a", "b"):
            x = tl.arange(0, 4)
        if KIND not in ("a", "b"):
            x = tl.arange(0, 8)

    check_ir(kernel, KIND="b")


def test_subscripts_insert_dimensions(check_ir):
    @jit
    def kernel():
        # CHECK: "tt.expand_dims"(%x) <{axis = 1 : i32}>
        # CHECK: "tt.expand_dims"(%x) <{axis = 0 : i32}>
        x = tl.arange(0, 4)
        y = x[:, None]
        z = x[None, :]

    check_ir(kernel)


def test_shapes_and_tuples_are_indexed_at_compile_time(check_ir):
    @jit
    def kernel():
        # CHECK: end = 8
        # CHECK: end = 2
        x = tl.zeros([8, 2], tl.float32)
        y = tl.arange(0, x.shape[0])
        z = tl.arange(0, x.shape[-1:][0])

    check_ir(kernel)


def test_attributes_of_types_and_modules(check_ir):
    @jit
    def kernel(p, N: tl.constexpr):
        # CHECK: tensor<4xf16>
        # CHECK: tensor<16xi32>
        # CHECK: value = 0x7f800000 : f32
        x = tl.zeros([4], p.dtype.element_ty)
        y = tl.arange(0, x.dtype.primitive_bitwidth)
        z = math.inf
        w = tl.arange(0, N.value)

    check_ir(kernel, "*fp16", N=4)


def test_f_string(capsys, check_ir):
    @jit
    def kernel(N: tl.constexpr):
        # CHECK: tt.return
        tl.static_print(f"{N:>4}|{N + 1}|{tl.float16}|{'a'!r}")

    check_ir(kernel, N=7)
    assert capsys.readouterr().out == "   7|8|fp16|'a'\n"


def test_integers_too_wide_for_32_bits(check_ir):
    @jit
    def kernel(a):
        # CHECK: value = 1099511627776 : i64
        x = a + (1 << 40)

    check_ir(kernel, "i64")
