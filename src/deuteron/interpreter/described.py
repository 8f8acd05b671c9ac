"""Tensors in memory as descriptors and block pointers describe them: addresses of blocks, and what of them is inside.

Described(base=4096, shape=(3, 5), strides=(5, 1)).block((1, 4), (2, 2), 4)
    addresses [[4132, 4136], [4152, 4156]]    inside [[True, False], [True, False]]
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Described:
    """A tensor in memory: the address of its first element, its shape, its strides in elements.

    `offsets` are those of the block that a block pointer points to; `pads_with_nan` is of a descriptor.
    """

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    pads_with_nan: bool = False

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """What tells it from others, for whoever compares values."""
        return np.array([self.base, *self.shape, *self.strides, *self.offsets, self.pads_with_nan], dtype)

    def moved(self, steps: tuple[int, ...]) -> Described:
        """The same tensor, with the block moved."""
        return replace(self, offsets=tuple(a + b for a, b in zip(self.offsets, steps, strict=True)))

    def block(
        self, offsets: tuple[int, ...], extents: tuple[int, ...], size: int, checked: Collection[int] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The address of each element of a block, and whether it lies in the tensor, as far as axes are checked."""
        address, inside = np.int64(self.base), np.bool_(True)
        for axis, (offset, extent) in enumerate(zip(offsets, extents, strict=True)):
            index = (offset + np.arange(extent, dtype=np.int64)).reshape(-1, *[1] * (len(extents) - 1 - axis))
            address = address + index * (self.strides[axis] * size)
            if checked is None or axis in checked:
                inside = inside & (index >= 0) & (index < self.shape[axis])
        return np.broadcast_to(address, extents), np.broadcast_to(inside, extents)

    def rows(self, rows: np.ndarray, column: int, extent: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The addresses of parts of rows of a matrix, and what of them lies in it."""
        row, columns = rows.astype(np.int64)[:, None], column + np.arange(extent, dtype=np.int64)
        address = self.base + (row * self.strides[0] + columns * self.strides[1]) * size
        return address, (row >= 0) & (row < self.shape[0]) & (columns >= 0) & (columns < self.shape[1])
