"""Values that a kernel cannot have or use so: the exact text of the errors, at the user's own line."""

from __future__ import annotations


def test_parameter_that_is_not_annotated(check_error):
    check_error(
        """
        @jit
        def kernel(n, BLOCK):
            x = n + tl.arange(0, BLOCK)
        """,
        """
        k.py:4:13: error: The end of tl.arange is an integer known at compile time, got int32. It is a parameter: annotate it, as in `BLOCK: tl.constexpr`.
            x = n + tl.arange(0, BLOCK)
                    ^~~~~~~~~~~~~~~~~~~
        """,
        "i32 i32",
    )


def test_parameter_that_is_not_annotated_in_a_called_function(check_error):
    check_error(
        """
        @jit
        def inner(SIZE: tl.constexpr):
            return tl.zeros((4, SIZE), tl.float32)

        @jit
        def kernel(n, BLOCK):
            x = inner(BLOCK)
        """,
        """
        k.py:4:12: error: The shape (4, int32) is not known at compile time: int32. It is a parameter: annotate it, as in `BLOCK: tl.constexpr`.
            return tl.zeros((4, SIZE), tl.float32)
                   ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
          called from k.py:8:9: x = inner(BLOCK)
        """,
        "i32 i32",
    )


def test_error_within_the_library(check_error):
    """It is shown where the user calls the library."""
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.sum(tl.arange(0, 8), axis=1)
        """,
        """
        k.py:4:9: error: tl.sum: int32[8] has no axis 1: it has 1 dimension.
            x = tl.sum(tl.arange(0, 8), axis=1)
                ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_matrix_product_operator(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.zeros((16, 16), tl.float32)
            y = x @ x
        """,
        """
        k.py:5:9: error: '@' is not defined for fp32[16, 16] and fp32[16, 16]. Use tl.dot(a, b).
            y = x @ x
                ^~~~~
        """,
    )


def test_variable_of_an_enclosing_function(check_error):
    check_error(
        """
        def make(width):
            @jit
            def kernel(n):
                x = n + width
            return kernel

        kernel = make(64)
        """,
        """
        k.py:5:17: error: 'width' is a variable of an enclosing function (64), which may change after the kernel is compiled. Write `width = tl.constexpr(...)` where it is defined, or pass it as an argument; for kernels of others there is TRITON_ALLOW_NON_CONSTEXPR_GLOBALS=1.
            x = n + width
                    ^~~~~
        """,
    )


def test_kernel_of_any_number_of_arguments(check_error):
    check_error(
        """
        @jit
        def kernel(*args):
            pass
        """,
        """
        k.py:3:1: error: Kernel 'kernel' has a parameter '*args' for any number of arguments. Give it one parameter, and launch it with a tuple.
            def kernel(*args):
            ^~~~~~~~~~~~~~~~~~
        """,
    )


def test_function_that_calls_itself(check_error):
    check_error(
        """
        @jit
        def inner(n):
            return inner(n + 1)

        @jit
        def kernel(n):
            x = inner(n)
        """,
        """
        k.py:4:12: error: 'inner' is called 64 levels deep, 63 of them by itself. Functions of kernels are inlined; use a loop, or end the recursion by what is known at compile time.
            return inner(n + 1)
                   ^~~~~~~~~~~~
          called from k.py:4:12: return inner(n + 1)
          called from k.py:4:12: return inner(n + 1)
          called from k.py:4:12: return inner(n + 1)
        """,
    )


def test_item_that_a_tuple_has_not(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = (n, 1)[2]
        """,
        """
        k.py:4:9: error: (int32, 1) has 2 items, and none of index 2.
            x = (n, 1)[2]
                ^~~~~~~~~
        """,
    )


def test_tuple_that_changes_its_length_in_a_loop(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            items = (n, 1)
            for i in range(n):
                items = items + (i,)
        """,
        """
        k.py:6:9: error: 'items' is (int32, int32) before the loop in line 5 and (int32, int32, int32) at the end of its body, but must keep its type. Use variables of their own.
            items = items + (i,)
            ^~~~~~~~~~~~~~~~~~~~
        """,
    )


PAIR = """
        from deuteron import aggregate

        @aggregate
        class Pair:
            first: tl.tensor
            SECOND: tl.constexpr
"""


def test_constexpr_field_that_is_not_known(check_error):
    check_error(
        PAIR
        + """
        @jit
        def kernel(n):
            pair = Pair(n, n)
        """,
        """
        k.py:11:12: error: 'SECOND' of Pair is a constexpr, got int32, which is known only at run time. Annotate the field as tl.tensor.
            pair = Pair(n, n)
                   ^~~~~~~~~~
        """,
    )


def test_constexpr_field_that_differs_between_branches(check_error):
    check_error(
        PAIR
        + """
        @jit
        def kernel(n):
            if n > 0:
                pair = Pair(n, 1)
            else:
                pair = Pair(n, 2)
        """,
        """
        k.py:11:5: error: 'pair' is Pair(first=int32, SECOND=1) on one side and Pair(first=int32, SECOND=2) on the other. Use variables of their own.
            if n > 0:
            ^~~~~~~~~
        """,
    )


def test_unknown_field_to_replace(check_error):
    check_error(
        PAIR
        + """
        @jit
        def kernel(n):
            pair = tl.aggregate_replace(Pair(n, 1), frist=2)
        """,
        """
        k.py:11:12: error: Pair(first=int32, SECOND=1) has no 'frist'. Did you mean 'first'?
            pair = tl.aggregate_replace(Pair(n, 1), frist=2)
                   ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_operator_that_an_aggregate_has_not(check_error):
    check_error(
        PAIR
        + """
        @jit
        def kernel(n):
            x = Pair(n, 1) + n
        """,
        """
        k.py:11:9: error: '+' is not defined for Pair(first=int32, SECOND=1) and int32. Write a method `__add__` with @jit.
            x = Pair(n, 1) + n
                ^~~~~~~~~~~~~~
        """,
    )


def test_minimum_that_depends_on_the_order(check_error):
    check_error(
        """
        @jit
        def kernel(n, NAN: tl.constexpr):
            x = min(1.0, NAN)
        """,
        """
        k.py:4:9: error: min() of (1.0, nan) depends on the order: tl.minimum knows NaN and -0.
            x = min(1.0, NAN)
                ^~~~~~~~~~~~~
        """,
        NAN=float("nan"),
    )


def test_maximum_of_both_zeros(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = max(-1, -0.0, 0)
        """,
        """
        k.py:4:9: error: max() of (-1, -0.0, 0) depends on the order: tl.maximum knows NaN and -0.
            x = max(-1, -0.0, 0)
                ^~~~~~~~~~~~~~~~
        """,
    )


def test_declared_constexpr_that_is_not_known(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            m: tl.constexpr
            m = n
            m = n + 1
        """,
        """
        k.py:6:5: error: 'm' is annotated as constexpr, got int32, which is known only at run time. Drop the annotation, or compute it from constexpr parameters.
            m = n + 1
            ^~~~~~~~~
        """,
    )


def test_constexpr_that_is_not_to_be_specialised_on(check_error):
    check_error(
        """
        from functools import partial

        @partial(jit, do_not_specialize=["N"])
        def kernel(n, N: tl.constexpr):
            pass
        """,
        """
        k.py:5:1: error: 'N' is a constexpr, which a kernel is compiled for: take it out of do_not_specialize.
            def kernel(n, N: tl.constexpr):
            ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        """,
        N=3,
    )
