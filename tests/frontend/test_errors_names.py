"""Names that mean nothing, or nothing here: the exact text of the errors."""

from __future__ import annotations


def test_undefined_name_suggests_one_that_is_alike(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            value = n
            x = vlue + 1
        """,
        """
        k.py:5:9: error: 'vlue' is not defined. Did you mean 'value'?
            x = vlue + 1
                ^~~~
        """,
    )


def test_undefined_name_without_a_like(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = n + zzz
        """,
        """
        k.py:4:13: error: 'zzz' is not defined.
            x = n + zzz
                    ^~~
        """,
    )


def test_global_number(check_error):
    check_error(
        """
        WIDTH = 64

        @jit
        def kernel(n):
            x = n + WIDTH
        """,
        """
        k.py:6:13: error: 'WIDTH' is a global variable (64), which may change after the kernel is compiled. Write `WIDTH = tl.constexpr(...)` where it is defined, or pass it as an argument; for kernels of others there is TRITON_ALLOW_NON_CONSTEXPR_GLOBALS=1.
            x = n + WIDTH
                    ^~~~~
        """,
    )


def test_global_list(check_error):
    check_error(
        """
        WIDTHS = [1, 2]

        @jit
        def kernel(n):
            x = WIDTHS[0]
        """,
        """
        k.py:6:9: error: 'WIDTHS' is a global variable ([1, 2]), which may change after the kernel is compiled. Write `WIDTHS = tl.constexpr(...)` where it is defined, or pass it as an argument; for kernels of others there is TRITON_ALLOW_NON_CONSTEXPR_GLOBALS=1.
            x = WIDTHS[0]
                ^~~~~~
        """,
    )


def test_a_comma_that_is_left_over(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            row = (n // 2,)
            offset = row * n
        """,
        """
        k.py:5:14: error: * takes tensors and numbers, got (int32,). A comma made it a tuple of one: leave it out.
            offset = row * n
                     ^~~~~~~
        """,
    )


def test_use_before_assignment(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = y
            y = 1
        """,
        """
        k.py:4:9: error: 'y' is used before it is assigned.
            x = y
                ^
        """,
    )


def test_variable_of_a_loop_body(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in range(n):
                x = i
            y = x
        """,
        """
        k.py:6:9: error: 'x' is first assigned within the loop in line 4, which may not run at all, so that it may have no value here. Assign it before the loop.
            y = x
                ^
        """,
    )


def test_loop_variable_after_its_loop(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in range(n):
                pass
            y = i
        """,
        """
        k.py:6:9: error: 'i' is the variable of the loop in line 4 and has no value after it. Use the end of its range, or a variable that the loop carries.
            y = i
                ^
        """,
    )


def test_variable_of_an_inner_loop_where_the_next_iteration_begins(check_error):
    """Not the value from before the outer loop, nor what is carried: a branch that is known never to run keeps it."""
    check_error(
        """
        @jit
        def kernel(p, n, OFF: tl.constexpr = False):
            i = n
            k = n
            while k + i < 100:
                k += 1
                if OFF:
                    for i in range(3):
                        pass
            for j in range(n):
                tl.store(p + i, j)
                for i in range(3):
                    pass
        """,
        """
        k.py:12:22: error: 'i' is also the variable of the loop in line 13, which may have run in an iteration before, so that it may have another value here. Give that loop a variable of its own.
            tl.store(p + i, j)
                         ^
        """,
        "*i32 i32",
    )


def test_variable_of_an_inner_loop_in_the_condition_of_the_outer_one(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            i = n
            while i < 100:
                for i in range(3):
                    pass
        """,
        """
        k.py:5:11: error: 'i' is also the variable of the loop in line 6, which may have run in an iteration before, so that it may have another value here. Give that loop a variable of its own.
            while i < 100:
                  ^
        """,
    )


def test_variable_of_an_inner_loop_after_a_loop_whose_paths_all_leave(check_error):
    """Not the value from before the loops."""
    check_error(
        """
        @jit
        def kernel(p, n):
            i = n
            for j in range(n):
                if j > 5:
                    break
                else:
                    for i in range(3):
                        pass
                    continue
            tl.store(p, i)
        """,
        """
        k.py:12:17: error: 'i' is the variable of the loop in line 9 and has no value after it. Use the end of its range, or a variable that the loop carries.
            tl.store(p, i)
                        ^
        """,
        "*i32 i32",
    )


def test_variable_of_one_branch(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            if n > 0:
                x = n
            y = x
        """,
        """
        k.py:6:9: error: 'x' is assigned on one side only of the 'if' in line 4, so that it may have no value here. Assign it before the 'if', or on both sides.
            y = x
                ^
        """,
    )


def test_unknown_function_of_a_module(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.lod(n)
        """,
        """
        k.py:4:9: error: Module 'deuteron.language' has no 'lod'. Did you mean 'load' or 'log'?
            x = tl.lod(n)
                ^~~~~~
        """,
    )


def test_unknown_method(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = n.too(tl.int64)
        """,
        """
        k.py:4:9: error: A value of type int32 has no 'too'. Did you mean 'to'?
            x = n.too(tl.int64)
                ^~~~~
        """,
    )


def test_unknown_attribute_of_a_number(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.float32.scala
        """,
        """
        k.py:4:9: error: tl.float32 has no 'scala'. Did you mean 'scalar'?
            x = tl.float32.scala
                ^~~~~~~~~~~~~~~~
        """,
    )


def test_value_of_a_runtime_value(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = n.value
        """,
        """
        k.py:4:9: error: '.value' is of a constexpr, got int32, which is known only at run time.
            x = n.value
                ^~~~~~~
        """,
    )
