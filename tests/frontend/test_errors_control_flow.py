"""Control flow that cannot be compiled: the exact text of the errors."""

from __future__ import annotations

import pytest

from deuteron.frontend import statements


def test_branches_of_different_types(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            if n > 0:
                x = n
            else:
                x = 1.0
        """,
        """
        k.py:4:5: error: 'x' is int32 on one side and fp32 on the other. Convert one of them, for instance with .to(tl.float32).
            if n > 0:
            ^~~~~~~~~
        """,
    )


def test_branches_of_different_shapes(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            if n > 0:
                x = tl.zeros([8], tl.int32)
            else:
                x = n
        """,
        """
        k.py:4:5: error: 'x' is int32[8] on one side and int32 on the other. Give both the same shape, with tl.full or tl.broadcast_to.
            if n > 0:
            ^~~~~~~~~
        """,
    )


def test_conditional_expression_of_different_kinds(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = n if n > 0 else 'none'
        """,
        """
        k.py:4:9: error: The conditional expression is int32 on one side and 'none' on the other. A value that is known only at compile time cannot depend on what happens at run time.
            x = n if n > 0 else 'none'
                ^~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_loop_changes_a_type(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            acc = 0
            for i in range(n):
                acc += 0.5
        """,
        """
        k.py:6:9: error: 'acc' is int32 before the loop in line 5 and fp32 at the end of its body, but must keep its type. Start with acc = 0.0, or convert what the loop assigns with .to(tl.int32).
            acc += 0.5
            ^~~~~~~~~~
        """,
    )


def test_loop_changes_a_shape(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            acc = 0.0
            for i in range(n):
                acc += tl.zeros([8], tl.float32)
        """,
        """
        k.py:6:9: error: 'acc' is fp32 before the loop in line 5 and fp32[8] at the end of its body, but must keep its type. Start with the shape it gets, for instance acc = tl.zeros([8], tl.float32).
            acc += tl.zeros([8], tl.float32)
            ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_loop_changes_a_string(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            mode = 'a'
            for i in range(n):
                mode = 'b'
        """,
        """
        k.py:5:5: error: 'mode' is 'a', a compile-time value, and a loop of the kernel cannot change it to 'b'. Use tl.static_range, or a variable of its own.
            for i in range(n):
            ^~~~~~~~~~~~~~~~~~
        """,
    )


def test_tile_as_condition(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = tl.arange(0, 8)
            if x > 2:
                pass
        """,
        """
        k.py:5:8: error: The condition of an 'if' is one value for the whole program, got int1[8]. Use tl.where to choose element by element, or reduce it with tl.max or tl.sum.
            if x > 2:
               ^~~~~
        """,
    )


def test_endless_loop(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            while True:
                n += 1
        """,
        """
        k.py:4:5: error: The condition of this 'while' is always true: True. Nothing in the loop can end it; let the condition depend on a variable that the loop assigns, or leave the loop by 'break'.
            while True:
            ^~~~~~~~~~~
        """,
    )


def test_return_of_a_value_on_one_path_only(check_error):
    check_error(
        """
        @jit
        def find(n):
            for i in range(n):
                if i == 2:
                    return i
            return

        @jit
        def kernel(n):
            x = find(n)
        """,
        """
        k.py:4:5: error: Some paths return int32 and others None. Return a value of that type there too.
            for i in range(n):
            ^~~~~~~~~~~~~~~~~~
          called from k.py:11:9: x = find(n)
        """,
    )


def test_loop_that_is_left_with_another_type(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            x = n
            for i in range(n):
                if i == 2:
                    x = 0.5
                    break
                x += 1
        """,
        """
        k.py:5:5: error: 'x' exists before the loop, but has no value at the end of its body. 'x' is fp32 on one side of the 'if' in line 6 and int32 on the other, where one of them leaves the loop's body. Convert one of them, for instance with .to(tl.float32).
            for i in range(n):
            ^~~~~~~~~~~~~~~~~~
        """,
    )


def test_sum_that_begins_as_an_integer_in_a_loop_with_continue(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            total = 0
            for i in range(n):
                value = i * 0.5
                if value > 2.0:
                    continue
                total += value
        """,
        """
        k.py:5:5: error: 'total' exists before the loop, but has no value at the end of its body. 'total' is int32 on one side of the 'if' in line 7 and fp32 on the other, where one of them leaves the loop's body. Convert one of them, for instance with .to(tl.float32).
            for i in range(n):
            ^~~~~~~~~~~~~~~~~~
        """,
    )


def test_variable_that_a_loop_may_be_left_without(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in tl.static_range(4):
                if n > i:
                    break
                x = n + i
            y = x
        """,
        """
        k.py:8:9: error: 'x' is assigned on one side only of the 'if' in line 5, so that it may have no value here. Assign it before the 'if', or on both sides.
            y = x
                ^
        """,
    )


def test_kernel_that_returns_a_value(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            return n
        """,
        """
        k.py:4:5: error: A kernel returns nothing, got int32. Store results through pointers.
            return n
            ^~~~~~~~
        """,
    )


def test_step_of_zero(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in range(0, n, 0):
                pass
        """,
        """
        k.py:4:14: error: The step of a range is 0. Use a step of 1 or more, or a negative one.
            for i in range(0, n, 0):
                     ^~~~~~~~~~~~~~
        """,
    )


def test_fractional_bound(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in range(1.5):
                pass
        """,
        """
        k.py:4:14: error: The end of a range is an integer, got 1.5. Divide with // for a whole number.
            for i in range(1.5):
                     ^~~~~~~~~~
        """,
    )


def test_static_range_of_a_runtime_value(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in tl.static_range(n):
                pass
        """,
        """
        k.py:4:14: error: tl.static_range needs compile-time bounds, got (0, int32, 1). It is a parameter: annotate it, as in `n: tl.constexpr`.
            for i in tl.static_range(n):
                     ^~~~~~~~~~~~~~~~~~
        """,
    )


def test_misspelt_hint(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in tl.range(4, num_stage=2):
                pass
        """,
        """
        k.py:4:14: error: 'tl.range' has no parameter 'num_stage'. Did you mean 'num_stages'? Its parameters are (arg1, arg2, step, num_stages, loop_unroll_factor, disallow_acc_multi_buffer, flatten, warp_specialize, disable_licm).
            for i in tl.range(4, num_stage=2):
                     ^~~~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_step_of_plain_range_by_name(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for i in range(0, n, step=2):
                pass
        """,
        """
        k.py:4:14: error: range() has no 'step'. Use tl.range.
            for i in range(0, n, step=2):
                     ^~~~~~~~~~~~~~~~~~~
        """,
    )


def test_loop_over_a_tile(check_error):
    check_error(
        """
        @jit
        def kernel(n):
            for x in tl.arange(0, 8):
                pass
        """,
        """
        k.py:4:5: error: A loop goes over range, tl.range, tl.static_range or a tuple, got int32[8]. To go over a tile, work on the tile as a whole.
            for x in tl.arange(0, 8):
            ^~~~~~~~~~~~~~~~~~~~~~~~~
        """,
    )


def test_more_ops_than_a_kernel_may_have(check_error, monkeypatch):
    monkeypatch.setattr(statements, "MOST_OPS", 100)
    check_error(
        """
        @jit
        def kernel(n):
            for i in tl.static_range(10000):
                n = n * 3 + i
        """,
        """
        k.py:5:9: error: The kernel has more than 100 ops: loops over tl.static_range and calls are written out. Use tl.range for loops that run often.
            n = n * 3 + i
            ^~~~~~~~~~~~~
        """,
    )


@pytest.mark.parametrize("count", [10**12, 1 << 63])
@pytest.mark.parametrize("over", ["tl.static_range({})", "[j for j in range({})]", "N"])
def test_more_items_than_a_loop_may_go_over(check_error, over, count):
    """They would take all memory, or are more than Python counts."""
    over = over.format(count)
    column, length = (5, len(f"for i in {over}:")) if over == "N" else (14, len(over))
    check_error(
        f"""
        @jit
        def kernel(n, N: tl.constexpr):
            for i in {over}:
                n = n * 3 + i
        """,
        f"""
        k.py:4:{column}: error: range(0, {count}) has more than 64000 items, too many to go over one by one while a kernel is compiled. Use tl.range for loops that run often.
            for i in {over}:
        {" " * (column - 1)}^{"~" * (length - 1)}
        """,
        N=range(count),
    )
