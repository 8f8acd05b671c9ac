"""What a `for` loop may go over, beside Python's `range`; what a `while` may test.

    for k in tl.range(0, K, BLOCK_K, num_stages=3): ...      a loop of the kernel, with hints
    for i in tl.static_range(4): ...                         unrolled: i is a compile-time value

    while tl.condition(i < n, disable_licm=True): ...        with a hint

The first two stand after `in` of a `for` only.
"""

from __future__ import annotations

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor

Bound = tensor | int


@builtin
def range(
    arg1: Bound,
    arg2: Bound | None = None,
    step: Bound | None = None,
    num_stages: int | None = None,
    loop_unroll_factor: int | None = None,
    disallow_acc_multi_buffer: bool = False,
    flatten: bool = False,
    warp_specialize: bool = False,
    disable_licm: bool = False,
):
    """Counts like Python's `range`, in a loop of the kernel.

    :param arg1: the end, or the start where `arg2` is given.
    :param arg2: the end.
    :param step: 1 where it is not given; a negative one must be known at compile time. Of one that is known at run time
        only, and is not positive, the loop has no iterations.
    :param num_stages: into how many stages loads and computations of the loop are pipelined.
    :param loop_unroll_factor: how many iterations are unrolled into one.
    :param disallow_acc_multi_buffer: whether the accumulator of a dot has one buffer only.
    :param flatten: whether iterations follow each other without a gap, as if this loop and those inside were one: where
        TMA copies what products in inner loops read, the first blocks of the next iteration come while this one ends.
    :param warp_specialize: whether loads and computations are given to different warps.
    :param disable_licm: whether nothing is hoisted out of the loop.

    Errors: bounds that are no integer scalars, a step of 0, `num_stages` or `loop_unroll_factor` below 0.
    """


@builtin
def static_range(arg1: int, arg2: int | None = None, step: int | None = None):
    """Counts like Python's `range`; the loop is unrolled, its variable is known at compile time.

    Errors: bounds that are not known at compile time, a step of 0.
    """


@builtin
def condition(arg1: Bound, disable_licm: bool = False):
    """The condition of a `while`, with hints for the loop; anywhere else it is `arg1`.

    :param arg1: a scalar, or a tile of one element, that is not zero for as long as the loop goes on.
    :param disable_licm: whether nothing is hoisted out of the loop.
    """
