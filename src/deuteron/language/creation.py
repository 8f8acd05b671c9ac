"""Tiles out of nothing: ranges and constants.

    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)

Shapes are known at compile time, and their extents are powers of two.
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor
from deuteron.language.types import dtype as _dtype


@builtin
def arange(start: int, end: int) -> tensor:
    """The integers from `start` up to and without `end`: an int32 tile of shape `[end - start]`.

    :param start: first value, known at compile time.
    :param end: one past the last value, known at compile time; `end - start` is a power of two.

    Errors: bounds that are not known at compile time or do not fit in int32, an empty range, an extent that is no power
    of two (make it one and mask what is too much).
    """


@builtin
def full(shape: Sequence[int], value: tensor | float, dtype: _dtype) -> tensor:
    """A tile with one value everywhere.

    :param shape: extents, powers of two known at compile time; `()` gives a scalar.
    :param value: a number or a runtime scalar; it is converted to `dtype`.
    :param dtype: type of the elements.

    Errors: a shape that is not constant or not of powers of two, a value that is a tile, a number out of the range of
    an integer `dtype`.
    """


@builtin
def zeros(shape: Sequence[int], dtype: _dtype) -> tensor:
    """A tile of zeros.

    :param shape: extents, powers of two known at compile time, as in `(64, 32)` or `[64]`.
    :param dtype: type of the elements, as in `tl.float32`.

    Errors: those of `full`.
    """
