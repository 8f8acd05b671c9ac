"""The memory of a launch: byte ranges that a kernel may access, and checked gather and scatter on them.

    memory = Memory([Buffer(array.ctypes.data, array.nbytes, "x_ptr")])
    [piece] = memory.resolve(addresses, np.dtype(np.float32))
    values = piece.elements[piece.index]

Pointers are byte addresses, so whatever has an address can be accessed: NumPy arrays, torch CPU tensors, C buffers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Buffer:
    """`nbytes` bytes of memory at `address`; `owner` is kept alive as long as the buffer.

    `pointer`: where in it a parameter points that comes with it, if not to its beginning.
    """

    address: int
    nbytes: int
    name: str = "buffer"
    readonly: bool = False
    owner: object = field(default=None, repr=False, compare=False)
    pointer: int | None = None

    @property
    def end(self) -> int:
        return self.address + self.nbytes


def buffer_of_array(array: np.ndarray, name: str) -> Buffer:
    """From the lowest to the highest byte of an array of any strides."""
    address = array.__array_interface__["data"][0]
    if array.size == 0:
        return Buffer(address, 0, name, owner=array)
    reaches = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True)]
    below, above = sum(r for r in reaches if r < 0), sum(r for r in reaches if r > 0)
    return Buffer(address + below, above - below + array.itemsize, name, not array.flags.writeable, array)


class BadAccess(Exception):
    """Lane `lane`, counted among the active ones, may not be accessed; `problem` says why."""

    def __init__(self, problem: str, lane: int, address: int, buffer: Buffer | None):
        super().__init__(problem, lane, address, buffer)
        self.problem, self.lane, self.address, self.buffer = problem, lane, address, buffer


class Piece(NamedTuple):
    """Lanes that lie in one buffer: `elements[index]` for the lanes `lanes`."""

    elements: np.ndarray
    index: np.ndarray
    lanes: slice | np.ndarray


class Memory:
    """All buffers of a launch. They may overlap: two arguments can be views of one array.

    `num_writes` counts the accesses that have changed them, or may have.
    """

    def __init__(self, buffers: Sequence[Buffer]):
        self.buffers = tuple(buffers)
        self.num_writes = 0
        self._elements: dict[tuple[int, int, np.dtype], tuple[np.ndarray, int]] = {}

    def resolve(
        self, addresses: np.ndarray, dtype: np.dtype, buffer: Buffer | None = None, writes: bool = False
    ) -> list[Piece]:
        """Where the elements at `addresses` (one dimension, not empty) lie; raises BadAccess.

        With `buffer`, all must lie in that one, otherwise each in any.
        """
        low, high = int(addresses.min()), int(addresses.max()) + dtype.itemsize
        self._check_alignment(addresses, dtype.itemsize, buffer)
        found = buffer or self._find(low, high)
        if found is None:
            return self._resolve_spread(addresses, dtype, writes)
        if low < found.address or high > found.end:
            is_outside = (addresses < found.address) | (addresses + dtype.itemsize > found.end)
            raise _bad("out of bounds", is_outside, addresses, found)
        if writes and found.readonly:
            raise BadAccess("read-only", 0, int(addresses[0]), found)
        elements, first = self._elements_of(found, dtype)
        return [Piece(elements, (addresses - first) // dtype.itemsize, slice(None))]

    def nearest(self, address: int) -> Buffer | None:
        """The buffer closest to an address, for an error message."""
        return min(self.buffers, key=lambda b: max(b.address - address, address - b.end, 0), default=None)

    def _find(self, low: int, high: int) -> Buffer | None:
        return next((b for b in self.buffers if b.address <= low and high <= b.end), None)

    def _check_alignment(self, addresses: np.ndarray, size: int, buffer: Buffer | None) -> None:
        if np.bitwise_or.reduce(addresses) & (size - 1):
            raise _bad("misaligned", addresses & (size - 1) != 0, addresses, buffer or self.nearest(int(addresses[0])))

    def _resolve_spread(self, addresses: np.ndarray, dtype: np.dtype, writes: bool) -> list[Piece]:
        """Lanes that lie in several buffers."""
        pieces, is_open = [], np.ones(len(addresses), bool)
        for buffer in self.buffers:
            inside = is_open & (addresses >= buffer.address) & (addresses + dtype.itemsize <= buffer.end)
            if inside.any():
                [piece] = self.resolve(addresses[inside], dtype, buffer, writes)
                pieces.append(piece._replace(lanes=inside))
                is_open &= ~inside
        if is_open.any():
            raise _bad("out of bounds", is_open, addresses, self.nearest(int(addresses[is_open.argmax()])))
        return pieces

    def _elements_of(self, buffer: Buffer, dtype: np.dtype) -> tuple[np.ndarray, int]:
        """The aligned elements of that dtype within a buffer, and the address of the first."""
        key = (buffer.address, buffer.nbytes, dtype)
        if key not in self._elements:
            first = -(-buffer.address // dtype.itemsize) * dtype.itemsize
            count = max(buffer.end - first, 0) // dtype.itemsize
            raw = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(first)
            self._elements[key] = np.frombuffer(raw, dtype, count), first
        return self._elements[key]


def _bad(problem: str, is_bad: np.ndarray, addresses: np.ndarray, buffer: Buffer | None) -> BadAccess:
    lane = int(is_bad.argmax())
    return BadAccess(problem, lane, int(addresses[lane]), buffer)
