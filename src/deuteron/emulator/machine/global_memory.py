"""Memory that all blocks see: the arrays given as arguments, the variables of the module, the kernel's parameters.

    memory = GlobalMemory()
    address = memory.add_array(x, "argument 0 (x)")
    memory.load(addresses, 4, 2)      two 32-bit words at each address, as an array [threads, 2] of uint32

Addresses are real ones: a load reads the array's own memory, once its range has been checked.
"""

from __future__ import annotations

import bisect
import ctypes
from dataclasses import dataclass

import numpy as np

from deuteron.cached_property import cached_property
from deuteron.emulator.faults import Fault

BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_PAD = 16


@dataclass(eq=False)
class Allocation:
    """A range of memory that a kernel may access. `owner` keeps the memory alive."""

    name: str
    base: int
    size: int
    is_writable: bool
    owner: object

    @property
    def end(self) -> int:
        return self.base + self.size

    @cached_property
    def origin(self) -> int:
        """The address of index 0 of the views: aligned, so that every aligned access has an index."""
        return self.base & -_PAD

    @cached_property
    def views(self) -> dict[int, np.ndarray]:
        """The memory as unsigned integers of 1, 2, 4, 8 bytes. Rounded out to 16 bytes, which share their page."""
        size = -(-(self.end - self.origin) // _PAD) * _PAD
        raw = (ctypes.c_char * size).from_address(self.origin)
        return {width: np.frombuffer(raw, dtype) for width, dtype in BITS.items()}


class GlobalMemory:
    """The allocations of a launch, sorted by address; arrays that overlap are one allocation."""

    def __init__(self) -> None:
        self.allocations: list[Allocation] = []
        self._bases: list[int] = []

    def add_array(self, array: np.ndarray, name: str, owner: object = None) -> int:
        """Make an array accessible; returns its address. `owner` is what keeps its memory alive, if not itself."""
        low, high = byte_bounds(array)
        self._add(Allocation(name, low, high - low, array.flags.writeable, (array, owner)))
        return array.ctypes.data

    def add_bytes(self, size: int, alignment: int, name: str, is_writable: bool) -> tuple[int, np.ndarray]:
        """A new allocation of zeros; returns its address and its bytes."""
        raw = np.zeros(size + alignment + _PAD, np.uint8)
        start = -raw.ctypes.data % alignment
        data = raw[start : start + size]
        if size:
            self._add(Allocation(name, data.ctypes.data, size, is_writable, raw))
        return data.ctypes.data, data

    def _add(self, new: Allocation) -> None:
        if not new.size:
            return
        for old in [a for a in self.allocations if a.base < new.end and new.base < a.end]:
            self.allocations.remove(old)
            base, end = min(old.base, new.base), max(old.end, new.end)
            name = old.name if old.name == new.name else f"{old.name} and {new.name}"
            is_writable = old.is_writable or new.is_writable
            new = Allocation(name, base, end - base, is_writable, (old.owner, new.owner))
        self.allocations.append(new)
        self.allocations.sort(key=lambda a: a.base)
        self._bases = [a.base for a in self.allocations]

    def find(self, address: int) -> Allocation | None:
        """The allocation that an address is in or, of those below it, the nearest."""
        index = bisect.bisect_right(self._bases, address) - 1
        return self.allocations[index] if index >= 0 else None

    def load(self, address: np.ndarray, width: int, count: int = 1) -> np.ndarray:
        """`count` adjacent unsigned integers of `width` bytes at each address: an array [threads, count]."""
        found = self._one_allocation(address, width * count, False)
        if found is not None:
            return found.views[width][_index(address, found, width, count)]
        result = np.empty((len(address), count), BITS[width])
        for allocation, mask in self._by_allocation(address, width * count, False):
            result[mask] = allocation.views[width][_index(address[mask], allocation, width, count)]
        return result

    def store(self, address: np.ndarray, values: np.ndarray) -> None:
        """Store values [threads, count] of an unsigned type; of equal addresses the last thread's value stays."""
        width, count = values.itemsize, values.shape[1]
        found = self._one_allocation(address, width * count, True)
        if found is not None:
            found.views[width][_index(address, found, width, count)] = values
            return
        for allocation, mask in self._by_allocation(address, width * count, True):
            allocation.views[width][_index(address[mask], allocation, width, count)] = values[mask]

    def check_store(self, address: np.ndarray, size: int) -> None:
        """Raise where these bytes may not be stored."""
        if self._one_allocation(address, size, True) is None:
            self._by_allocation(address, size, True)

    def _one_allocation(self, address: np.ndarray, size: int, is_store: bool) -> Allocation | None:
        if not len(address):
            return None
        low, high = int(address.min()), int(address.max())
        found = self.find(low)
        is_inside = found is not None and high + size <= found.end and (found.is_writable or not is_store)
        return found if is_inside else None

    def _by_allocation(self, address: np.ndarray, size: int, is_store: bool) -> list[tuple[Allocation, np.ndarray]]:
        index = np.searchsorted(np.asarray(self._bases, np.uint64), address, side="right") - 1
        parts = []
        for number in np.unique(index):
            mask = index == number
            allocation = self.allocations[number] if number >= 0 else None
            self._check(allocation, address, mask, size, is_store)
            parts.append((allocation, mask))
        return parts

    def _check(self, found: Allocation | None, address: np.ndarray, mask: np.ndarray, size: int, store: bool) -> None:
        end = found.end if found else 0
        bad = mask & (address.astype(np.uint64) + np.uint64(size) > end)
        verb = "writes" if store else "reads"
        if bad.any():
            first = int(address[bad][0])
            raise Fault("out-of-bounds", f"{verb} {size} bytes at {self._describe(first)}", np.flatnonzero(bad))
        if store and not found.is_writable:
            raise Fault("read-only", f"writes {size} bytes of {found.name}, which is read-only", np.flatnonzero(mask))

    def _describe(self, address: int) -> str:
        """An address by the nearest allocation: `8 bytes past the end of argument 0`."""
        best = min(
            self.allocations,
            key=lambda a: a.base - address if address < a.base else max(address - a.end, 0),
            default=None,
        )
        if best is None or min(abs(best.base - address), abs(address - best.end)) > 1 << 32:
            return f"{address:#x}, which is in no array"
        if address < best.base:
            return f"{address:#x}, {best.base - address} bytes before {best.name} of {best.size} bytes"
        if address >= best.end:
            return f"{address:#x}, {address - best.end} bytes past the end of {best.name} of {best.size} bytes"
        return f"{address:#x}, over the end of {best.name} of {best.size} bytes"


def byte_bounds(array: np.ndarray) -> tuple[int, int]:
    """The first byte of an array and the one after its last; it may have gaps and negative strides."""
    low = high = array.ctypes.data
    for size, stride in zip(array.shape, array.strides, strict=True):
        low, high = low + min((size - 1) * stride, 0), high + max((size - 1) * stride, 0)
    return low, high + array.itemsize


def _index(address: np.ndarray, allocation: Allocation, width: int, count: int) -> np.ndarray:
    first = ((address - np.uint64(allocation.origin)) // np.uint64(width)).astype(np.int64)
    return first[:, None] + np.arange(count) if count > 1 else first[:, None]
