"""The standard library: functions of the language that are written in the language.

    @Function
    def cdiv(x, div):
        return (x + (div - 1)) // div

A kernel calls them like its own @jit functions: they are inlined. Conditions on types, axes and flags are known at
compile time, so that only one branch is compiled; a variable that stays a number is annotated `constexpr`.
"""

from __future__ import annotations

from deuteron.language.arithmetic import minimum
from deuteron.language.constant import constexpr
from deuteron.language.convert import to_tensor
from deuteron.language.creation import full
from deuteron.language.debug import device_assert, static_assert
from deuteron.language.functions.function import Function
from deuteron.language.math import exp, fdiv
from deuteron.language.reductions import max, sum
from deuteron.language.shape import join, reshape


@Function
def cdiv(x, div):
    """`x / div` rounded up, of integers at compile time or at run time (where both are positive)."""
    return (x + (div - 1)) // div


@Function
def sigmoid(x):
    """`1 / (1 + exp(-x))`. Types: fp32, fp64; any other is an error."""
    return 1 / (1 + exp(-x))


@Function
def softmax(x, dim=None, *, keep_dims=None, ieee_rounding=False):
    """The softmax of `x` along an axis; the shape stays.

    :param dim: the axis; None is the first, unlike in NumPy and torch.
    :param keep_dims: without effect.
    :param ieee_rounding: whether the division at the end is correctly rounded.
    """
    axis: constexpr = 0 if dim is None else dim
    numerator = exp(x - max(x, axis, keep_dims=True))
    return fdiv(numerator, sum(numerator, axis, keep_dims=True), ieee_rounding)


@Function
def zeros_like(input):
    """A tile of zeros of the shape and type of `input`."""
    return full(input.shape, 0, input.dtype)


@Function
def ravel(x, can_reorder=False):
    """The elements of `x` in one dimension, row-major."""
    return reshape(x, (x.numel,), can_reorder=can_reorder)


@Function
def squeeze(x, dim):
    """`x` without dimension `dim`, whose extent is 1. Error: another extent, a dimension that does not exist."""
    rank: constexpr = len(x.shape)
    static_assert(-rank <= dim and dim < rank, f"there is no dimension {dim} in the shape {x.shape}")
    axis: constexpr = dim + rank if dim < 0 else dim
    static_assert(x.shape[axis] == 1, f"the dimension {dim} of the shape {x.shape} has another extent than 1")
    return reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


@Function
def unsqueeze(x, dim):
    """`x` with a dimension of extent 1 at `dim` of the result. Error: a dimension that the result does not have."""
    rank: constexpr = len(x.shape) + 1
    static_assert(-rank <= dim and dim < rank, f"there is no dimension {dim} for the shape {x.shape}")
    axis: constexpr = dim + rank if dim < 0 else dim
    return reshape(x, x.shape[:axis] + (1,) + x.shape[axis:])


@Function
def expect_zero(x, mask):
    """`x`; in a kernel that is compiled with `debug=True` an assertion that it is 0 wherever `mask` is true."""
    device_assert((x == 0) | ~to_tensor(mask), "expect_zero: x is not 0 where the mask is true")
    return x


@Function
def interleave(a, b):
    """The elements of `a` and `b` in turn along the last dimension: a0 b0 a1 b1 ... Two scalars give a tile."""
    joined = join(a, b)
    if len(joined.shape) == 1:
        return joined
    else:  # noqa: RET505
        return reshape(joined, joined.shape[:-2] + (2 * joined.shape[-2],))


@Function
def swizzle2d(i, j, size_i, size_j, size_g):
    """Place `(i, j)` of a `size_i` by `size_j` grid in an order that is column-major within groups of `size_g` rows.

    Programs that run at the same time then share rows and columns of a matmul's operands. 4 by 4 with groups of 2:

        0  1  2  3           0  2  4  6
        4  5  6  7    ->     1  3  5  7
        8  9 10 11           8 10 12 14
       12 13 14 15           9 11 13 15
    """
    index = i * size_j + j
    group = index // (size_g * size_j)
    first_row = group * size_g
    rows = minimum(size_i - first_row, size_g)  # the last group may have fewer
    within = index % (size_g * size_j)
    return first_row + within % rows, within // rows
