"""Calls that do not fit, and errors within called functions: the exact text."""

from __future__ import annotations


def test_function_without_jit(check_error):
    check_error(
        """
        def helper(x):
            return x

        @jit
        def kernel(n):
            x = helper(n)
        """,
        """
        k.py:7:9: error: 'helper' is a function of Python. Decorate it with @jit to call it in a kernel.
            x = helper(n)
                ^~~~~~~~~
        """,
    )


def test_builtin_of_python(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = sum(tl.arange(0, 8))
        """,
        """
        k.py:4:9: error: sum() takes a tuple, got int32[8]. Use tl.sum for the sum of a tile.
            x = sum(tl.arange(0, 8))
                ^~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_range_of_a_run_time_value_that_no_loop_goes_over(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in reversed(range(n)):
                pass
        """,
        """
        k.py:4:23: error: 'range' runs at compile time and needs compile-time values, got (int32). Loop over it as in `for i in range(n)`, or down as in `for i in range(n - 1, -1, -1)`.
            for i in reversed(range(n)):
                              ^~~~~~~~
        """,
    )


def test_constexpr_argument_that_is_not_known(check_error):
    """It is that value: what is wrong is the use that has to know it."""
    check_error(
        """
        @jit
        def inner(y: tl.constexpr):
            return tl.arange(0, y)

        @jit
        def kernel(n):
            x = inner(n)
        """,
        """
        k.py:4:12: error: The end of tl.arange is an integer known at compile time, got int32. It is a parameter: annotate it, as in `n: tl.constexpr`.
            return tl.arange(0, y)
                   ^~~~~~~~~~~~~~~
          called from k.py:8:9: x = inner(n)
        """,
    )


def test_misspelt_keyword(check_error):
    check_error(
        """
        @jit
        def inner(y, BLOCK: tl.constexpr = 4):
            return y

        @jit
        def kernel(n):
            x = inner(n, BLOK=8)
        """,
        """
        k.py:8:9: error: 'inner' has no parameter 'BLOK'. Did you mean 'BLOCK'? Its parameters are (y, BLOCK).
            x = inner(n, BLOK=8)
                ^~~~~~~~~~~~~~~~
        """,
    )


def test_dropped_result(check_error):
    check_error(
        """
        from deuteron import must_use_result

        @must_use_result("It changes nothing.")
        @jit
        def inner(y):
            return y

        @jit
        def kernel(n):
            inner(n)
        """,
        """
        k.py:11:5: error: The result of 'inner' is not used. Assign it to a variable. It changes nothing.
            inner(n)
            ^~~~~~~~
        """,
    )


def test_append_to_a_list(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = [n]
            x.append(n)
        """,
        """
        k.py:5:5: error: A list is a tuple in a kernel and has no 'append'. Build a longer one, as in `items = items + (x,)`.
            x.append(n)
            ^~~~~~~~
        """,
    )


def test_too_many_arguments(check_error):
    check_error(
        """
        @jit
        def inner(y):
            return y

        @jit
        def kernel(n):
            x = inner(n, 2)
        """,
        """
        k.py:8:9: error: 'inner': too many positional arguments. Its parameters are (y).
            x = inner(n, 2)
                ^~~~~~~~~~~
        """,
    )


def test_unknown_argument_of_a_builtin(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.zeros([8], tl.int32, fill=1)
        """,
        """
        k.py:4:9: error: 'zeros' has no parameter 'fill'. Its parameters are (shape, dtype).
            x = tl.zeros([8], tl.int32, fill=1)
                ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_chain_of_calls(check_error):
    check_error(
        """
        @jit
        def inner(y):
            return y + z

        @jit
        def outer(x):
            return inner(x)

        @jit
        def kernel(n):
            x = outer(
                n)
        """,
        """
        k.py:4:16: error: 'z' is not defined.
            return y + z
                       ^
          called from k.py:8:12: return inner(x)
          called from k.py:12:9: x = outer(
        """,
    )


def test_recursion(check_error):
    check_error(
        """
        @jit
        def inner(y):
            return inner(y)

        @jit
        def kernel(n):
            x = inner(n)
        """,
        """
        k.py:4:12: error: 'inner' is called 64 levels deep, 63 of them by itself. Functions of kernels are inlined; use a loop, or end the recursion by what is known at compile time.
            return inner(y)
                   ^~~~~~~~
          called from k.py:4:12: return inner(y)
          called from k.py:4:12: return inner(y)
          called from k.py:4:12: return inner(y)
        """,
    )


def test_constexpr_annotation_of_a_runtime_value_in_a_loop(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = n + 1
            for i in range(n):
                x: tl.constexpr = x + i
        """,
        """
        k.py:6:9: error: 'x' is annotated as constexpr, got int32, which is known only at run time. Drop the annotation, or compute it from constexpr parameters.
            x: tl.constexpr = x + i
            ^~~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_division_by_zero_at_compile_time(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = 1 // 0
        """,
        """
        k.py:4:9: error: '//' of (1, 0) fails at compile time: ZeroDivisionError: integer division or modulo by zero
            x = 1 // 0
                ^~~~~~
        """,
    )


def test_runtime_value_in_an_f_string(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = f'{n}'
        """,
        """
        k.py:4:9: error: An f-string is made at compile time, got int32. Print a run-time value with tl.device_print.
            x = f'{n}'
                ^~~~~~
        """,
    )


def test_runtime_index_of_a_tuple(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = (1, 2)[n]
        """,
        """
        k.py:4:9: error: (1, 2) is indexed at compile time, got the run-time index int32. Use a constant.
            x = (1, 2)[n]
                ^~~~~~~~~
        """,
    )


def test_assertion_at_compile_time(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            assert 1 > 2, 'order'
        """,
        """
        k.py:4:5: error: '1 > 2' does not hold at compile time: order
            assert 1 > 2, 'order'
            ^~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_columns_count_letters_not_bytes(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            é = tl.zeros([8], tl.int32); x = é.too(n)
        """,
        """
        k.py:4:38: error: A value of type int32[8] has no 'too'. Did you mean 'to'?
            é = tl.zeros([8], tl.int32); x = é.too(n)
                                             ^~~~~
        """,
    )
