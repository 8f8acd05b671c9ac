"""How TMA copies a tile between global memory and a layout of shared memory: the box of a copy, its swizzle, and where
in the tile and in shared memory each copy begins.

    tensor_box(mma_shared([128, 128], 1, 2), 2)      TensorBox((128, 64), 128): two copies, of 64 columns each
    tensor_box(row_major([4, 8, 32]), 4)             TensorBox((4, 8, 32), 0): one copy

A copy writes its box row by row, the last dimension the fastest. Under a swizzle of s bytes a row of the box has s
bytes, and bits of the address from 7 on are XORed into the number of the 16-byte chunk. A box has at most 256 elements
in each dimension (CUDA driver API, cuTensorMapEncodeTiled).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from deuteron.layout.linear import OFFSET, Basis, LinearLayout, log2
from deuteron.layout.shared import SWIZZLE_ALIGNMENT

SWIZZLES = (128, 64, 32, 0)
MAX_EXTENT = 256
CHUNK_BYTES = 16
COPY_ALIGNMENT = 128  # of the shared memory of a copy
_SWIZZLED_ROWS = 8  # after so many the pattern begins again
_ROW_BIT = 7  # of the address, the lowest that is XORed into the chunk


@dataclass(frozen=True)
class TensorBox:
    """The box of a copy, a part of a tile, and the span of its swizzle in bytes."""

    shape: tuple[int, ...]
    swizzle: int

    @property
    def num_elements(self) -> int:
        return prod(self.shape)


def tensor_box(
    layout: LinearLayout, element_bytes: int, min_copies: int = 1, alignment: int = SWIZZLE_ALIGNMENT
) -> TensorBox | None:
    """The largest box of which copies, at least so many, make the layout (offset -> coordinates); None where none does.

    `min_copies` is a power of two; `alignment`, in bytes, that of the shared memory. The bits that a swizzle XORs into
    chunks are those of the address: of a single row as well, which is where it was only if they are 0 at its beginning.
    """
    for swizzle in (one for one in SWIZZLES if one * _SWIZZLED_ROWS <= alignment):
        box = _box(layout, swizzle, element_bytes, log2(min_copies))
        if box is not None:
            return box
    return None


def box_places(layout: LinearLayout, box: TensorBox) -> Iterator[tuple[Basis, int]]:
    """Where each copy begins: coordinates in the tile, and the offset in shared memory, in elements."""
    start = log2(box.num_elements)
    bases = layout.of(OFFSET)[start:]
    for number in range(1 << len(bases)):
        yield layout(**{OFFSET: number << start}), number << start


def _box(layout: LinearLayout, swizzle: int, element_bytes: int, copy_bits: int) -> TensorBox | None:
    bases, rank = list(layout.of(OFFSET)), len(layout.shape)
    shape, axis, bit = [1] * rank, rank - 1, 0
    inner = swizzle // element_bytes if swizzle else MAX_EXTENT
    while bit < len(bases) - copy_bits:
        limit = inner if axis == rank - 1 else MAX_EXTENT
        fits = shape[axis] < min(layout.shape[axis], limit)
        if fits and bases[bit] == _basis(shape, axis, bit, swizzle, element_bytes):
            shape[axis] *= 2
            bit += 1
        elif axis and (shape[axis] == layout.shape[axis] or (axis == rank - 1 and shape[axis] == inner)):
            axis -= 1
        else:
            break
    row_bytes = shape[-1] * element_bytes
    if row_bytes < CHUNK_BYTES or (swizzle and row_bytes != swizzle) or not _are_starts(bases[bit:], shape):
        return None
    aligned = max(COPY_ALIGNMENT, _SWIZZLED_ROWS * swizzle)
    if bit < len(bases) and (element_bytes << bit) % aligned:
        return None
    return TensorBox(tuple(shape), swizzle)


def _basis(shape: list[int], axis: int, bit: int, swizzle: int, element_bytes: int) -> Basis:
    """The coordinates that a bit of the offset adds as a copy writes the box."""
    basis = [0] * len(shape)
    basis[axis] = shape[axis]
    row_bit = bit + log2(element_bytes) - _ROW_BIT
    if axis < len(shape) - 1 and row_bit >= 0 and swizzle >> 5 + row_bit:
        basis[-1] ^= CHUNK_BYTES // element_bytes << row_bit
    return tuple(basis)


def _are_starts(bases: list[Basis], shape: list[int]) -> bool:
    """Whether the bits above a box move by whole boxes."""
    return all(entry % extent == 0 for basis in bases for entry, extent in zip(basis, shape, strict=True))
