"""`if` and conditional expressions: known ones choose what is compiled, others become scf.if."""

from __future__ import annotations

import deuteron.language as tl
from deuteron.language.functions.function import Function as jit


def test_known_condition_compiles_one_side(check_ir):
    @jit
    def kernel(n, FLAG: tl.constexpr):
        # CHECK-NOT: scf.if
        # CHECK: "arith.addi"
        # CHECK-NOT: arith.subi
        if FLAG is None:
            x = n + 1
        else:
            x = n - undefined  # noqa: F821
        y = x

    check_ir(kernel, "i32", FLAG=None)


def test_elif_chain_of_known_conditions(check_ir):
    @jit
    def kernel(n, KIND: tl.constexpr):
        # CHECK: "arith.muli"
        # CHECK-NOT: arith.subi
        if KIND == "add":
            x = n + n
        elif KIND == "mul":
            x = n * n
        else:
            x = n - n

    check_ir(kernel, "i32", KIND="mul")


def test_runtime_if_joins_what_both_sides_assign(check_ir):
    @jit
    def kernel(n):
        # CHECK: %x = "scf.if"(
        # CHECK:   %x_1 = "arith.addi"(%n, %n)
        # CHECK:   "scf.yield"(%x_1) : (i32) -> ()
        # CHECK:   %x_2 = "arith.subi"(%n, %n)
        # CHECK:   "scf.yield"(%x_2) : (i32) -> ()
        # CHECK: }) : (i1) -> i32
        # CHECK: "arith.muli"(%x, %x)
        if n > 0:
            x = n + n
        else:
            x = n - n
        y = x * x

    check_ir(kernel, "i32")


def test_variable_from_before_is_kept_on_the_side_without_assignment(check_ir):
    @jit
    def kernel(n, flag):
        # CHECK: %x = "arith.addi"(%n, %n)
        # CHECK: %x_1 = "scf.if"(%flag) ({
        # CHECK:   %x_2 = "arith.muli"(%x, %n)
        # CHECK:   "scf.yield"(%x_2)
        # CHECK: }, {
        # CHECK-NEXT: "scf.yield"(%x) : (i32) -> ()
        x = n + n
        if flag:
            x = x * n

    check_ir(kernel, "i32 i1")


def test_unchanged_variables_are_not_joined(check_ir):
    @jit
    def kernel(n, flag):
        # CHECK: "scf.if"(%flag) ({
        # CHECK: }) : (i1) -> ()
        # CHECK: "arith.addi"(%n, %n)
        x = n
        if flag:
            tl.debug_barrier()
            x = n
        y = x + x

    check_ir(kernel, "i32 i1")


def test_different_numbers_become_one_scalar(check_ir):
    @jit
    def kernel(flag, DEFAULT: tl.constexpr):
        # CHECK: [[V:%.*]] = "scf.if"(%flag)
        # CHECK: value = 3 : i32
        # CHECK: value = 7 : i32
        # CHECK: %x = "arith.addi"([[V]]
        x = (3 if flag else DEFAULT) + 1

    check_ir(kernel, "i1", DEFAULT=7)


def test_equal_compile_time_values_stay_known(check_ir):
    @jit
    def kernel(flag, n):
        # CHECK: tt.make_range
        # CHECK-SAME: end = 32
        if flag:
            BLOCK: tl.constexpr = 32
        else:
            BLOCK: tl.constexpr = 32
        x = tl.arange(0, BLOCK)

    check_ir(kernel, "i1 i32")


def test_tuples_are_joined_item_by_item(check_ir):
    @jit
    def kernel(flag, n):
        # CHECK: %pair, %pair_1 = "scf.if"(%flag)
        # CHECK: "arith.addi"(%pair, %pair_1)
        pair = (n, 1)
        if flag:
            pair = (n + 1, n + 2)
        x = pair[0] + pair[1]

    check_ir(kernel, "i1 i32")


def test_integer_condition_is_compared_with_zero(check_ir):
    @jit
    def kernel(n):
        # CHECK: [[C:%.*]] = "arith.cmpi"(%n, %{{.*}}) <{predicate = 1 : i64}>
        # CHECK: "scf.if"([[C]])
        if n:
            tl.debug_barrier()

    check_ir(kernel, "i32")


def test_conditional_expression_with_known_condition(check_ir):
    @jit
    def kernel(n, EVEN: tl.constexpr):
        # CHECK: %x = "arith.addi"
        # CHECK-NOT: scf.if
        x = n + n if EVEN else undefined  # noqa: F821

    check_ir(kernel, "i32", EVEN=True)


def test_early_return_moves_the_rest_to_the_other_side(check_ir):
    @jit
    def kernel(p, n):
        # CHECK: "scf.if"
        # CHECK-NEXT: "scf.yield"() : () -> ()
        # CHECK-NEXT: }, {
        # CHECK: "tt.store"
        # CHECK: }) : (i1) -> ()
        # CHECK-NEXT: "tt.return"() : () -> ()
        if n == 0:
            return
        tl.store(p, n)

    check_ir(kernel, "*i32 i32")


def test_return_values_of_branches_are_joined(check_ir):
    @jit
    def sign(x):
        if x > 0:
            return 1
        if x < 0:
            return -1
        return 0

    @jit
    def kernel(p, n):
        # CHECK: %s = "scf.if"
        # CHECK: value = 1 : i32
        # CHECK: "scf.if"
        # CHECK: value = -1 : i32
        # CHECK: value = 0 : i32
        # CHECK: "tt.store"(%p, %s)
        s = sign(n)
        tl.store(p, s)

    check_ir(kernel, "*i32 i32")


def test_return_within_nested_branches_tells_what_follows(check_ir):
    @jit
    def kernel(p, n, flag):
        # CHECK: [[LEFT:%.*]] = "scf.if"(%flag)
        # CHECK: "scf.if"([[LEFT]]) ({
        # CHECK: }, {
        # CHECK: "tt.store"
        # CHECK-NOT: "tt.store"
        # CHECK: "tt.return"
        if flag:
            if n == 0:
                return
        tl.store(p, n)

    check_ir(kernel, "*i32 i32 i1")


def test_known_early_return_drops_the_rest(check_ir):
    @jit
    def kernel(p, DONE: tl.constexpr):
        # CHECK-NOT: tt.store
        # CHECK: "tt.return"
        if DONE:
            return
        tl.store(p, undefined)  # noqa: F821

    check_ir(kernel, "*i32", DONE=True)
