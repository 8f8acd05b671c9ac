"""Elements found by an index that is known when the kernel runs.

tl.gather(table, codes, axis=0)             table[codes], from registers: no memory is read
tl.histogram(experts, 64, mask=offsets < n)
"""

from __future__ import annotations

from deuteron.language.builtin import builtin
from deuteron.language.tensor import tensor


@builtin
def gather(src: tensor, index: tensor, axis: int) -> tensor:
    """The elements of a tile that an index names along an axis: `out[i, j] = src[index[i, j], j]` for axis 0.

    :param src: a tile of any type.
    :param index: integers, of the same rank; every extent but that of `axis` is that of `src`.
    :param axis: the dimension to gather along. Negative counts from the end.
    :returns: a tile of the index's shape and the source's type.

    An index outside of [0, extent) gives some element of `src`; in the interpreter it is an error.
    Errors: an index that is no integer, another rank, other extents, an axis out of range.
    """


@builtin
def histogram(input: tensor, num_bins: int, mask: tensor | None = None) -> tensor:
    """How often each of 0, 1, ... `num_bins` - 1 is in a tile of one dimension, int32[num_bins].

    :param input: integers; those that are negative or too large are not counted.
    :param num_bins: a power of two, known at compile time.
    :param mask: where it is false, an element is not counted; broadcast to the shape of `input`.

    Errors: floats, more dimensions than one (`tl.ravel` makes one of them), a mask that is not bool.
    """
