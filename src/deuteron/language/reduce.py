"""Reductions and scans with a function that combines two elements.

    @triton.jit
    def larger(a, b):
        return tl.where(a > b, a, b)

    row_max = tl.reduce(x, 1, larger)
    mean, m2, weight = tl.reduce((mean, m2, weight), 0, welford_combine)

`tl.sum`, `tl.max`, `tl.cumsum` ... are written with these, in standard.py.
"""

from __future__ import annotations

from collections.abc import Callable

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor

Operands = tensor | tuple[tensor, ...]


@builtin
def reduce(input: Operands, axis: int | None, combine_fn: Callable, keep_dims: bool = False) -> Operands:
    """All elements along an axis combined to one.

    :param input: a tile, or a tuple of n tiles of one shape that are reduced together.
    :param axis: the dimension that goes; None for all, which leaves a scalar. Negative counts from the end.
    :param combine_fn: a @jit function, or one of the language such as `tl.maximum`, of 2n scalars, first the n of one
        side, then the n of the other, that returns n of the same types. It is taken as associative. One that is not
        commutative combines neighbours, in their order; Triton takes any order.
    :param keep_dims: whether the dimension stays, with extent 1.
    :returns: a tile or scalar, or a tuple of n.

    Errors: a scalar, an axis out of range, different shapes, a function that is not @jit or returns other types.
    """


@builtin
def associative_scan(input: Operands, axis: int, combine_fn: Callable, reverse: bool = False) -> Operands:
    """Each element combined with all before it along an axis; the shape stays.

    :param input: a tile, or a tuple of n tiles of one shape that are scanned together.
    :param axis: the dimension to go along. Negative counts from the end.
    :param combine_fn: as for `reduce`; it is taken as associative.
    :param reverse: whether it goes from the last element to the first.

    Errors: those of `reduce`.
    """
