"""`triton.tools.ragged_tma`: parts of an array, each of rows that begin and end where a kernel says, by one descriptor.

    desc = create_ragged_descriptor(x, [32, 64])          x has rows one after another, of many parts
    y = load_ragged(desc, first, num_rows, [i, j])        rows first + i ...; what is not among the part's rows is 0
    store_ragged(desc, first, num_rows, [i, j], y)        and is not stored

A descriptor has one bound for its rows, LIMIT. Rows of a part are counted so that its last one comes just below it; a
dimension of blocks of one then moves the address to where the part ends, and another back by LIMIT rows. The latter is
done by a stride so large that LIMIT of it are 2**64 elements less LIMIT rows: addresses have 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deuteron.backend.tensor_descriptor import TensorDescriptor, strides_of
from deuteron.errors import UsageError
from deuteron.language.constant import constexpr
from deuteron.language.functions.function import Function
from deuteron.language.shape import reshape

LIMIT = constexpr(2**30)
_ANY = 2**31 - 2**16
_MAX_RANK = 3


def create_ragged_descriptor(T: Any, block_shape: Sequence[int], ragged_dim: int = 0) -> TensorDescriptor:
    """The descriptor of an array of 2 or 3 dimensions, for the functions here. Its last dimension has one bound."""
    rank, dim = len(T.shape), ragged_dim % len(T.shape)
    if rank > _MAX_RANK or len(block_shape) != rank or dim == rank - 1 or T.shape[dim] > LIMIT.value:
        raise UsageError(
            f"a ragged descriptor is of 2 or 3 dimensions with blocks of as many, ragged in none but the last, got the "
            f"shape {list(T.shape)}, blocks {list(block_shape)}, ragged_dim={ragged_dim}"
        )
    strides = strides_of(T)
    shape = [LIMIT.value if each == dim else extent for each, extent in enumerate(T.shape)]
    back = 2**64 // LIMIT.value - strides[dim]
    return TensorDescriptor(T, [_ANY, _ANY, *shape], [back, strides[dim], *strides], [1, 1, *block_shape])


@Function
def _place(slice_off, slice_size, coords, ragged_dim: constexpr):
    row = LIMIT - slice_size + coords[ragged_dim]
    return (LIMIT, slice_off + slice_size, *coords[:ragged_dim], row, *coords[ragged_dim + 1 :])


@Function
def load_ragged(TMA, slice_off, slice_size, coords, ragged_dim: constexpr = 0):
    """The block at `coords` of the part of `slice_size` rows from `slice_off` on; 0 outside of it."""
    data = TMA.load(_place(slice_off, slice_size, coords, ragged_dim))
    return reshape(data, data.shape[2:])


@Function
def store_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: constexpr = 0):
    """Store a block at `coords` of a part; what is outside of the part is not stored."""
    TMA.store(_place(slice_off, slice_size, coords, ragged_dim), reshape(data, (1, 1) + data.shape))


@Function
def atomic_add_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: constexpr = 0):
    """Add a block at `coords` of a part; what is outside of the part is not touched."""
    TMA.atomic_add(_place(slice_off, slice_size, coords, ragged_dim), reshape(data, (1, 1) + data.shape))


RAGGED_NAMES = {
    "create_ragged_descriptor": create_ragged_descriptor,
    "load_ragged": load_ragged,
    "store_ragged": store_ragged,
    "atomic_add_ragged": atomic_add_ragged,
}
