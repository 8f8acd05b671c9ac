"""Python that the language does not have: the exact text of the errors."""

from __future__ import annotations


def test_lambda(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            f = lambda x: x
        """,
        """
        k.py:4:9: error: 'lambda' is not supported in a kernel. Define a function with @jit.
            f = lambda x: x
                ^~~~~~~~~~~
        """,
    )


def test_comprehension(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = {i: 1 for i in (1, 2)}
        """,
        """
        k.py:4:9: error: A dictionary comprehension is not supported in a kernel. Write the items out, or use a `tl.static_range` loop.
            x = {i: 1 for i in (1, 2)}
                ^~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_with(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            with n:
                pass
        """,
        """
        k.py:4:5: error: 'with' is not supported in a kernel. Call what the block needs directly.
            with n:
            ^~~~~~~
        """,
    )


def test_try(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            try:
                pass
            finally:
                pass
        """,
        """
        k.py:4:5: error: 'try' is not supported in a kernel. A kernel has no exceptions. Use `tl.static_assert` or `tl.device_assert`.
            try:
            ^~~~
        """,
    )


def test_nested_function(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            def inner():
                pass
        """,
        """
        k.py:4:5: error: A nested function is not supported in a kernel. Define it outside, with @jit.
            def inner():
            ^~~~~~~~~~~~
        """,
    )


def test_dictionary(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = {'a': n}
        """,
        """
        k.py:4:9: error: A dictionary is not supported in a kernel. A kernel has tuples, but no sets or dictionaries. Use a tuple, or parameters of their own.
            x = {'a': n}
                ^~~~~~~~
        """,
    )


def test_assignment_to_an_item(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.arange(0, 8)
            x[0] = 1
        """,
        """
        k.py:5:5: error: Cannot assign to 'x[0]'. Tiles and tuples cannot be changed in place. Build a new one, for instance with tl.where.
            x[0] = 1
            ^~~~~~~~
        """,
    )


def test_starred_target(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x, *y, z = (1,)
        """,
        """
        k.py:4:5: error: Cannot assign (int32,) to at least 2 variables.
            x, *y, z = (1,)
            ^~~~~~~~~~~~~~~
        """,
    )


def test_unpacking_a_scalar(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x, y = n
        """,
        """
        k.py:4:5: error: Cannot assign int32 to 2 variables.
            x, y = n
            ^~~~~~~~
        """,
    )


def test_keyword_arguments_in_a_dictionary(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.load(n, **n)
        """,
        """
        k.py:4:9: error: '**' in a call unpacks the keywords of a function, got int32. Write them out.
            x = tl.load(n, **n)
                ^~~~~~~~~~~~~~~
        """,
    )
