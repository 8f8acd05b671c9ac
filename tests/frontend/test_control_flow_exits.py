"""`break`, `continue`, `return`: what becomes of the paths that leave, and that what follows is compiled once."""

from __future__ import annotations

import warnings

import pytest
from ir_text import generic_text

import deuteron.language as tl
from deuteron.language.functions.function import Function as jit


def test_break_makes_a_while_that_counts(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: [[ANY:%.*]] = "arith.cmpi"(%{{.*}}, %n) <{predicate = 2
        # CHECK: %{{.*}}, %total_1 = "scf.while"([[ANY]], %{{.*}}, %total) ({
        # CHECK: ^bb0(%going: i1, %iteration: i32, %total_2: i32):
        # CHECK-NEXT: "scf.condition"(%going, %iteration, %total_2)
        # CHECK: %i = "arith.addi"
        # CHECK: [[C:%.*]] = "arith.cmpi"(%x
        # CHECK: %total_{{.*}} = "scf.if"([[C]]) ({
        # CHECK:   "scf.yield"(%total_3) : (i32) -> ()
        # CHECK: }, {
        # CHECK:   "arith.addi"(%total_3, %x)
        # CHECK: [[MORE:%.*]] = "arith.cmpi"(%{{.*}}, %{{.*}}) <{predicate = 8
        # CHECK: [[NOT:%.*]] = "arith.xori"([[C]]
        # CHECK: [[GOING:%.*]] = "arith.andi"([[MORE]], [[NOT]])
        # CHECK: "scf.yield"([[GOING]], %{{.*}}, %total_{{.*}})
        # CHECK: "tt.store"(%p, %total_1)
        total = 0
        for i in range(n):
            x = tl.load(p + i)
            if x > 8:
                break
            total += x
        tl.store(p, total)

    check_ir(kernel, "*i32 i32")


def test_continue_leaves_a_for_a_for(check_ir):
    @jit
    def kernel(p, n):
        # CHECK-NOT: scf.while
        # CHECK: "scf.for"
        # CHECK: %total_{{.*}} = "scf.if"
        # CHECK-NEXT: "scf.yield"(%total_{{.*}}) : (i32) -> ()
        # CHECK-NOT: xori
        total = 0
        for i in range(n):
            x = tl.load(p + i)
            if x > 8:
                continue
            total += x
        tl.store(p, total)

    check_ir(kernel, "*i32 i32")


def test_break_that_is_never_reached_leaves_a_for_a_for(check_ir):
    @jit
    def kernel(p, n, EARLY: tl.constexpr):
        # CHECK-NOT: scf.while
        # CHECK: "scf.for"
        for i in range(n):
            if EARLY:
                break
            tl.store(p + i, i)

    check_ir(kernel, "*i32 i32", EARLY=False)


def test_endless_while_with_a_break(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: "scf.while"(%{{.*}}, %n) ({
        # CHECK: ^bb0(%going: i1, %n_{{.*}}: i32):
        # CHECK: "arith.shrsi"
        while True:
            n = n >> 1
            if n < 5:
                break
        tl.store(p, n)

    check_ir(kernel, "*i32 i32")


def test_return_in_a_loop_tells_the_function_and_gives_its_value(check_ir):
    @jit
    def find(p, n):
        for i in range(n):
            if tl.load(p + i) == 7:
                return i
        return -1

    @jit
    def kernel(p, n):
        # CHECK: %{{.*}}, [[FOUND:%.*]], [[VALUE:%.*]] = "scf.while"
        # CHECK: [[RESULT:%.*]] = "scf.if"([[FOUND]]) ({
        # CHECK-NEXT: "scf.yield"([[VALUE]])
        # CHECK: value = -1 : i32
        # CHECK: "tt.store"(%p, [[RESULT]])
        tl.store(p, find(p, n))

    check_ir(kernel, "*i32 i32")


def test_unrolled_loop_guards_the_iterations_that_follow(check_ir):
    @jit
    def kernel(p):
        # CHECK: "scf.if"([[FIRST:%.*]]) ({
        # CHECK: "scf.if"([[FIRST]]) ({
        # CHECK: }, {
        # CHECK: "tt.load"
        # CHECK-NOT: scf.while
        for i in tl.static_range(2):
            if tl.load(p + i) > 0:
                break
            tl.store(p + i, i)

    check_ir(kernel, "*i32")


def test_unrolled_loop_with_a_break_that_is_known_stops_there(check_ir):
    @jit
    def kernel(p):
        # CHECK-COUNT-2: "tt.store"
        # CHECK-NOT: "tt.store"
        # CHECK: "tt.return"
        for i in tl.static_range(100):
            if i == 2:
                break
            tl.store(p + i, i)

    check_ir(kernel, "*i32")


def test_loop_keeps_a_compile_time_value_on_the_paths_that_go_on(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: end = 16 : i32
        if n > 0:
            BLOCK: tl.constexpr = 16
        else:
            return
        tl.store(p + tl.arange(0, BLOCK), n)

    check_ir(kernel, "*i32 i32")


def test_variables_of_paths_that_all_leave_are_not_joined(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: "scf.if"(%{{.*}}) ({
        # CHECK-NEXT: "scf.yield"() : () -> ()
        # CHECK: }) : (i1) -> ()
        if n == 0:
            return
        x = tl.arange(0, 64)
        tl.store(p + x, x)

    check_ir(kernel, "*i32 i32")


def test_what_follows_many_returns_is_compiled_once(lower):
    @jit
    def kernel(p, a, b):
        for i in tl.static_range(12):
            if a > i:
                if b > i:
                    return
                tl.store(p + 1, i)
        if a > 50:
            b += 1
            if b > 50:
                return
        if a > 60:
            b += 1
            if b > 60:
                return
        tl.store(p, a)

    text = generic_text(lower(kernel, "*i32 i32 i32"), locations=False)
    assert text.count('"tt.store"') == 13


def test_pointer_of_a_path_that_has_left_points_nowhere(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: "tt.int_to_ptr"
        for i in tl.static_range(2):
            if n > 3:
                if n > i + 5:
                    break
                q = p + i
            else:
                q = p
            tl.store(q, i)

    check_ir(kernel, "*i32 i32")


def test_a_function_may_end_without_a_value_on_some_paths(check_ir):
    @jit
    def half(n):
        if n & 1 == 0:
            return n >> 1

    @jit
    def kernel(p, n):
        # CHECK: [[X:%.*]] = "scf.if"
        # CHECK: "arith.shrsi"
        # CHECK: }, {
        # CHECK: value = 0 : i32
        # CHECK: "tt.store"(%p, [[X]])
        tl.store(p, half(n))

    with pytest.warns(UserWarning, match=r":\d+: 'half' returns int32 on some paths and nothing on others"):
        check_ir(kernel, "*i32 i32")


def test_a_loop_that_may_end_before_its_function_returns_is_warned_of(check_ir):
    @jit
    def first_above(n):
        for i in range(10):
            if i > n:
                return i

    @jit
    def kernel(p, n):
        # CHECK: "scf.while"
        tl.store(p, first_above(n))

    with pytest.warns(UserWarning, match="'first_above' returns int32 on some paths and nothing on others"):
        check_ir(kernel, "*i32 i32")


def test_paths_that_all_return_are_not_warned_of(check_ir):
    @jit
    def half(n):
        if n & 1 == 0:
            return n >> 1
        return n

    @jit
    def kernel(p, n):
        # CHECK: "scf.if"
        tl.store(p, half(n))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_ir(kernel, "*i32 i32")
