"""Calls: inlined functions, compile-time functions of Python, methods, and which globals a kernel sees."""

from __future__ import annotations

import math
from collections import namedtuple

import deuteron.language as tl
from deuteron.language.functions.function import Function as jit
from deuteron.language.functions.source_functions import constexpr_function

WIDTH = tl.constexpr(32)
WIDTHS = (tl.constexpr(2), tl.constexpr(4))
Pair = namedtuple("Pair", ["first", "second"])


@constexpr_function
def doubled(x):
    return 2 * x


@jit
def scaled(x, FACTOR: tl.constexpr = 3, *, offset=1):
    y = x * FACTOR
    return y + offset


def test_call_is_inlined_with_names_of_the_callee(check_ir):
    @jit
    def kernel(n):
        # CHECK: [[THREE:%.*]] = "arith.constant"() <{value = 3 : i32}>
        # CHECK: %y = "arith.muli"(%n, [[THREE]])
        # CHECK: %z = "arith.addi"(%y, %n)
        z = scaled(n, offset=n)

    check_ir(kernel, "i32")


def test_known_arguments_are_known_in_the_callee(check_ir):
    @jit
    def block(N):
        return tl.arange(0, N * 2)

    @jit
    def kernel():
        # CHECK: %x = "tt.make_range"() <{start = 0 : i32, end = 16 : i32}>
        x = block(8)

    check_ir(kernel)


def test_variables_of_the_caller_are_not_seen_or_changed(check_ir):
    @jit
    def inner(x):
        n = x * x
        return n

    @jit
    def kernel(n):
        # CHECK: %n_1 = "arith.muli"(%n, %n)
        # CHECK: %z = "arith.subi"(%n, %n_1)
        y = inner(n)
        z = n - y

    check_ir(kernel, "i32")


def test_function_without_return_gives_none(check_ir):
    @jit
    def nothing(x):
        """Nothing."""

    @jit
    def kernel(n):
        # CHECK: end = 4
        if nothing(n) is None:
            x = tl.arange(0, 4)

    check_ir(kernel, "i32")


def test_several_values_are_returned_and_starred(check_ir):
    @jit
    def swapped(a, b):
        return b, a

    @jit
    def kernel(a, b):
        # CHECK: %d = "arith.subi"(%a, %b)
        c = swapped(*swapped(a, b))
        d = c[0] - c[1]

    check_ir(kernel, "i32 i32")


def test_functions_are_values(check_ir):
    @jit
    def twice(fn: tl.constexpr, x):
        return fn(fn(x))

    @jit
    def square(x):
        return x * x

    @jit
    def kernel(n):
        # CHECK-COUNT-2: arith.muli
        # CHECK: math.exp
        a = twice(square, n)
        b = twice(tl.exp, n.to(tl.float32))

    check_ir(kernel, "i32")


def test_variable_number_of_arguments(check_ir):
    @jit
    def total(*values):
        result = values[0]
        for value in values[1:]:
            result += value
        return result

    @jit
    def kernel(a, b):
        # CHECK-COUNT-2: arith.addi
        x = total(a, b, a)

    check_ir(kernel, "i32 i32")


def test_constexpr_globals_and_compile_time_functions(check_ir):
    @jit
    def kernel():
        # CHECK: end = 32 : i32
        # CHECK: end = 64 : i32
        # CHECK: end = 4 : i32
        # CHECK: end = 16 : i32
        # CHECK: end = 8 : i32
        a = tl.arange(0, WIDTH)
        b = tl.arange(0, doubled(WIDTH))
        c = tl.arange(0, WIDTHS[1])
        d = tl.arange(0, max(int(math.sqrt(256)), 3))
        e = tl.arange(0, tl.constexpr(8))

    check_ir(kernel)


def test_extremes_of_known_numbers_with_a_negative_zero(check_ir, capsys):
    @jit
    def kernel():
        # CHECK: tt.return
        tl.static_print(max(-0.0, 1.0), max(1.0, 2.5, -0.0), min(-0.0, -3, 0), max(-0.0, -1.0))

    check_ir(kernel)
    assert capsys.readouterr().out == "1.0 2.5 -3 -0.0\n"


def test_variable_of_an_enclosing_function(check_ir):
    block = tl.constexpr(16)

    @jit
    def kernel():
        # CHECK: end = 16 : i32
        x = tl.arange(0, block)

    check_ir(kernel)


def test_named_tuples_hold_values(check_ir):
    @jit
    def kernel(a, b):
        # CHECK: %x = "arith.subi"(%b, %a)
        pair = Pair(second=a, first=b)
        x = pair.first - pair.second

    check_ir(kernel, "i32 i32")


def test_isinstance_tells_tensors_from_constexprs(check_ir):
    @jit
    def kernel(n, N: tl.constexpr):
        # CHECK: end = 4
        # CHECK: end = 8
        if isinstance(n, tl.tensor):
            x = tl.arange(0, 4)
        if isinstance(N, tl.constexpr) and isinstance(N, int) and not isinstance(n, tl.constexpr):
            x = tl.arange(0, 8)

    check_ir(kernel, "i32", N=1)


def test_print_is_device_print(check_ir):
    @jit
    def kernel(n):
        # CHECK: "tt.print"(%n) <{prefix = " n: "
        print("n", n)

    check_ir(kernel, "i32")


def test_assert_of_a_runtime_condition(check_ir):
    @jit
    def kernel(n):
        # CHECK: "tt.assert"(%{{.*}}) <{message = "positive"}>
        assert n > 0, "positive"

    check_ir(kernel, "i32")
