"""`for` and `while`: loops of the kernel with what they carry, and loops that are unrolled."""

from __future__ import annotations

import pytest

import deuteron.language as tl
from deuteron.language.functions.function import Function as jit


def test_for_carries_what_the_body_assigns(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: %total = "arith.constant"() <{value = 0.000000e+00 : f32}>
        # CHECK: %total_1 = "scf.for"(%{{.*}}, %n, %{{.*}}, %total)
        # CHECK: ^bb0(%i: i32, %total_2: f32):
        # CHECK:   %total_3 = "arith.addf"(%total_2, %x)
        # CHECK:   "scf.yield"(%total_3) : (f32) -> ()
        # CHECK: "tt.store"(%p, %total_1)
        total = 0.0
        for i in range(n):
            x = tl.load(p + i)
            total += x
        tl.store(p, total)

    check_ir(kernel, "*fp32 i32")


def test_variable_that_keeps_its_value_is_not_carried(check_ir):
    @jit
    def kernel(n):
        # CHECK: "scf.for"(%{{[0-9]+}}, %n, %{{[0-9]+}}) ({
        # CHECK: ^bb0(%i: i32):
        # CHECK: "arith.addi"(%n, %i)
        x = n
        for i in range(n):
            y = x + i
            x = x  # noqa: PLW0127

    check_ir(kernel, "i32")


def test_swapped_variables_are_both_carried(check_ir):
    @jit
    def kernel(a, b):
        # CHECK: %x, %y = "scf.for"(%{{.*}}, %{{.*}}, %{{.*}}, %a, %b)
        # CHECK: ^bb0(%i: i32, %x_1: i32, %y_1: i32):
        # CHECK: "scf.yield"(%y_1, %x_1)
        x = a
        y = b
        for i in range(4):
            x, y = y, x
        z = x - y

    check_ir(kernel, "i32 i32")


def test_number_changed_by_the_body_is_carried(check_ir):
    @jit
    def kernel(n, START: tl.constexpr):
        # CHECK: %START = "scf.for"
        # CHECK: ^bb0(%i: i32, %START_1: i32):
        for i in range(n):
            START += i
        x = START

    check_ir(kernel, "i32", START=5)


def test_number_unchanged_by_the_body_stays_known(check_ir):
    @jit
    def kernel(n, BLOCK: tl.constexpr, HALVE: tl.constexpr):
        # CHECK: "scf.for"(%{{[0-9]+}}, %n, %{{[0-9]+}}) ({
        # CHECK: end = 64
        for i in range(n):
            if HALVE:
                BLOCK = BLOCK // 2
            x = tl.arange(0, BLOCK)

    check_ir(kernel, "i32", BLOCK=64, HALVE=False)


def test_negative_step_counts_up_from_the_start(check_ir):
    @jit
    def kernel(n):
        # CHECK: [[STEP:%.*]] = "arith.constant"() <{value = 3 : i32}>
        # CHECK: [[COUNT:%.*]] = "arith.ceildivui"(%{{.*}}, [[STEP]])
        # CHECK: [[TRIPS:%.*]] = "arith.minui"([[COUNT]], %{{.*}})
        # CHECK: "scf.for"(%{{.*}}, [[TRIPS]], %{{.*}})
        # CHECK: ^bb0(%iteration: i32):
        # CHECK: [[DOWN:%.*]] = "arith.muli"(%iteration, [[STEP]])
        # CHECK: %i = "arith.subi"(%n, [[DOWN]])
        for i in range(n, 0, -3):
            x = i * i

    check_ir(kernel, "i32")


def test_bounds_of_two_widths_are_counted_in_the_wider(check_ir):
    @jit
    def kernel(n, m):
        # CHECK: [[START:%.*]] = "arith.extsi"(%n) : (i32) -> i64
        # CHECK: "scf.for"([[START]], %m
        # CHECK: ^bb0(%i: i64):
        for i in range(n, m):
            x = i * i

    check_ir(kernel, "i32 i64")


def test_unsigned_bound_is_counted_in_64_bits(check_ir):
    @jit
    def kernel(n):
        # CHECK: "arith.extui"(%n) : (i32) -> i64
        for i in range(n):
            x = i * i

    check_ir(kernel, "u32")


def test_hints_of_tl_range_are_attributes(check_ir):
    @jit
    def kernel(n):
        # CHECK: "scf.for"
        # CHECK: }) {tt.num_stages = 3 : i32, tt.loop_unroll_factor = 2 : i32, tt.flatten}
        for i in tl.range(0, n, 1, num_stages=3, loop_unroll_factor=2, flatten=True, warp_specialize=False):
            x = i * i

    check_ir(kernel, "i32")


def test_hints_of_plain_range_are_ignored(check_ir):
    @jit
    def kernel(n):
        # CHECK: "scf.for"
        # CHECK-NOT: tt.flatten
        for i in range(n, flatten=True, num_stages=3):
            x = i * i

    with pytest.warns(
        UserWarning, match=r":\d+: range\(\) has no 'flatten', 'num_stages', which is ignored. Use tl.range."
    ):
        check_ir(kernel, "i32")


def test_static_range_is_unrolled(check_ir):
    @jit
    def kernel(p):
        # CHECK-NOT: scf.for
        # CHECK: end = 4 : i32
        # CHECK: end = 8 : i32
        for i in tl.static_range(2, 4):
            x = tl.arange(0, 2**i)

    check_ir(kernel, "*i32")


def test_loop_over_a_tuple_is_unrolled(check_ir):
    @jit
    def kernel(a, b):
        # CHECK-NOT: scf.for
        # CHECK: %[[X:.*]] = "arith.addi"(%total, %a)
        # CHECK: "arith.addi"(%[[X]], %b)
        total = 0
        for item, _ in ((a, None), (b, None)):
            total += item

    check_ir(kernel, "i32 i32")


def test_nested_loops_carry_through(check_ir):
    @jit
    def kernel(n):
        # CHECK: %total_1 = "scf.for"(%{{.*}}, %n, %{{.*}}, %total)
        # CHECK: ^bb0(%i: i32, %total_2: i32):
        # CHECK:   %total_3 = "scf.for"(%{{.*}}, %i, %{{.*}}, %total_2)
        # CHECK:   ^bb0(%j: i32, %total_4: i32):
        # CHECK:     "scf.yield"(%total_5)
        # CHECK:   "scf.yield"(%total_3)
        total = 0
        for i in range(n):
            for j in range(i):
                total += j
        x = total

    check_ir(kernel, "i32")


def test_while(check_ir):
    @jit
    def kernel(n):
        # CHECK: %x = "scf.while"(%n) ({
        # CHECK: ^bb0(%x_1: i32):
        # CHECK:   [[C:%.*]] = "arith.cmpi"(%x_1
        # CHECK:   "scf.condition"([[C]], %x_1) : (i1, i32) -> ()
        # CHECK: }, {
        # CHECK: ^bb0(%x_2: i32):
        # CHECK:   "scf.yield"(%x_3) : (i32) -> ()
        # CHECK: }) : (i32) -> i32
        x = n
        while x > 1:
            x = x // 2
        y = x

    check_ir(kernel, "i32")


def test_while_condition_on_a_bool_that_is_carried(check_ir):
    @jit
    def kernel(n):
        # CHECK: %x, %running_1 = "scf.while"(%n, %running)
        # CHECK: ^bb0(%x_1: i32, %running_2: i1):
        # CHECK-NEXT: "scf.condition"(%running_2, %x_1, %running_2)
        running = n > 0
        x = n
        while running:
            x -= 3
            running = x > 0
        y = x

    check_ir(kernel, "i32")


def test_loop_in_a_branch(check_ir):
    @jit
    def kernel(n, flag):
        # CHECK: %x = "scf.if"(%flag)
        # CHECK:   %x_{{.*}} = "scf.for"
        x = n
        if flag:
            for i in range(n):
                x += i
        y = x

    check_ir(kernel, "i32 i1")


def test_loop_that_never_runs_leaves_nothing(lower):
    @jit
    def kernel(n, ON: tl.constexpr):
        while ON:
            n += n

    module = lower(kernel, "i32", ON=False)
    func = module.body.block.first_op
    assert [op.name for op in func.walk()] == ["tt.func", "tt.return"]
    assert not func.args[0].uses
