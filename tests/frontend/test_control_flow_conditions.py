"""What decides between paths: pointers, tiles of one element, logic; and what a conditional expression gives."""

from __future__ import annotations

import deuteron.language as tl
from deuteron.language.functions.function import Function as jit


def test_pointer_is_compared_with_null(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: [[A:%.*]] = "tt.ptr_to_int"(%p)
        # CHECK: [[C:%.*]] = "arith.cmpi"([[A]], %{{.*}}) <{predicate = 1
        # CHECK: "scf.if"([[C]])
        if p:
            tl.store(p, n)
        # CHECK: "arith.xori"
        # CHECK: "scf.if"
        if not p:
            tl.debug_barrier()

    check_ir(kernel, "*i32 i32")


def test_tile_of_one_element_decides(check_ir):
    @jit
    def kernel(p):
        # CHECK: [[S:%.*]] = "tt.unsplat"
        # CHECK: "scf.if"
        # CHECK: "tt.unsplat"
        # CHECK: "scf.condition"
        x = tl.load(p + tl.arange(0, 1))
        if x > 0:
            tl.store(p, 1)
        while tl.load(p + tl.arange(0, 1))[None, :] > 2:
            tl.store(p, 1)

    check_ir(kernel, "*i32")


def test_not_of_a_number_asks_whether_it_is_zero(check_ir):
    @jit
    def kernel(n, x):
        # CHECK: "arith.cmpi"(%n, %{{.*}}) <{predicate = 1
        # CHECK: "arith.xori"
        # CHECK: "arith.cmpf"(%x, %{{.*}}) <{{{.*}}predicate = 13
        # CHECK: "arith.andi"
        y = not n and x

    check_ir(kernel, "i32 fp32")


def test_conditional_expression_promotes(check_ir):
    @jit
    def kernel(flag, x, n):
        # CHECK: %y = "scf.if"(%flag) ({
        # CHECK:   "scf.yield"(%x) : (f16)
        # CHECK:   value = 0.000000e+00 : f16
        y = x if flag else 0
        # CHECK: %z = "scf.if"(%flag) ({
        # CHECK:   "arith.extsi"(%n) : (i16) -> i32
        # CHECK:   value = 70000 : i32
        z = n.to(tl.int32) if flag else 70000
        # CHECK: "scf.if"(%flag) ({
        # CHECK:   "tt.splat"(%x)
        # CHECK: }, {
        # CHECK:   value = dense<1.000000e+00> : tensor<8xf16>
        # CHECK: }) : (i1) -> tensor<8xf16>
        t = x if flag else tl.full([8], 1.0, tl.float16)
        # CHECK: "scf.if"(%flag) ({
        # CHECK: }) : (i1) -> (f16, i32)
        u = (x, 1, None) if flag else (0, 2, None)

    check_ir(kernel, "i1 fp16 i16")


def test_walrus_in_a_conditional_expression_changes_the_variable(check_ir):
    @jit
    def kernel(p, flag, n):
        # CHECK: %x, %y = "scf.if"(%flag)
        # CHECK: "tt.store"(%p, %x)
        x = n
        y = (x := n + 1) if flag else 0
        tl.store(p, x)
        tl.store(p + 1, y)

    check_ir(kernel, "*i32 i1 i32")


def test_membership_and_identity_are_known(check_ir):
    @jit
    def kernel(p, KIND: tl.constexpr, q: tl.constexpr):
        # CHECK-NOT: scf.if
        # CHECK: value = 3 : i32
        if KIND in ("a", "b") and KIND not in ("c",) and q is None and p is not None:
            tl.store(p, 3)
        if q:
            tl.store(p, 4)

    check_ir(kernel, "*i32", KIND="b", q=None)


def test_walrus_in_a_while(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: "scf.while"
        # CHECK: %x{{.*}} = "tt.load"
        # CHECK: "scf.if"
        # CHECK: "tt.store"(%p, %x
        x = 0
        while (x := tl.load(p + n)) > 0:
            n += x
        tl.store(p, x)

    check_ir(kernel, "*i32 i32")


def test_condition_with_a_hint(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: {tt.disable_licm}
        while tl.condition(n > 0, disable_licm=True):
            tl.store(p + n, 7 * 5)
            n -= 1
        # CHECK-NOT: disable_licm
        while tl.condition(n > 0):
            n -= 1

    check_ir(kernel, "*i32 i32")
