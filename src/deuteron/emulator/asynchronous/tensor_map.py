"""The emulation of CUtensorMap: what a TMA instruction knows of a tensor in global memory.

    TensorMap(x, box=(64, 32), swizzle=128)        box: elements of each dimension, in the order of x's axes

It is given as an argument of a launch; the kernel sees 128 bytes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from deuteron.emulator.asynchronous.swizzle import swizzle
from deuteron.emulator.faults import Fault
from deuteron.emulator.machine.global_memory import GlobalMemory
from deuteron.emulator.types import TYPES
from deuteron.errors import LaunchError

SIZE = 128
ADDRESSES = 1 << 64
_KINDS = {"f": "f", "i": "s", "u": "u"}
NAN_BITS = {"f16": 0x7E00, "bf16": 0x7FC0}
_MAGIC = b"deuteronTensorMap"
_registry: dict[int, TensorMap] = {}


class TensorMap:
    """A tiled tensor map. `box` follows the array's axes; PTX coordinates go the other way round. What is out of bounds
    reads as `fill`, `zero` or `nan`, and is not written. `type` is PTX's of the elements where the array holds bits.

    With `sizes`, the array is a view of the memory of another argument, to `end`: the tensor is said to have these
    sizes, as many elements as there are the array has, and what is not there may not be accessed.
    """

    def __init__(
        self,
        array: np.ndarray,
        box: Sequence[int],
        swizzle: int = 0,
        fill: str = "zero",
        type: str | None = None,
        sizes: Sequence[int] | None = None,
        end: int = 0,
    ):
        self.array = array
        self.box = tuple(int(size) for size in box)
        self.swizzle = swizzle
        self.fill = fill
        self.type = type or f"{_KINDS[array.dtype.kind]}{8 * array.itemsize}"
        self._sizes = tuple(array.shape if sizes is None else sizes)
        self._is_view, self._end = sizes is not None, end
        self._check()

    def add_to(self, memory: GlobalMemory, name: str) -> None:
        if not self._is_view:
            memory.add_array(self.array, f"the tensor of {name}")

    def to_bytes(self) -> bytes:
        """128 bytes by which `from_bytes` finds this map again."""
        _registry[id(self)] = self
        return (_MAGIC + id(self).to_bytes(8, "little")).ljust(SIZE, b"\0")

    @property
    def itemsize(self) -> int:
        return self.array.itemsize

    @property
    def box_bytes(self) -> int:
        return int(np.prod(self.box)) * self.itemsize

    def shared_addresses(self, start: int) -> np.ndarray:
        """The shared-memory address of every byte of the box [rows, bytes of a row], as the swizzle puts it."""
        row_bytes = self.box[-1] * self.itemsize
        pitch = self.swizzle or row_bytes
        rows = self.box_bytes // row_bytes
        return swizzle(start + np.arange(rows)[:, None] * pitch + np.arange(row_bytes), self.swizzle)

    def read(self, coordinates: Sequence[int]) -> np.ndarray:
        """The bytes of the box at these coordinates (innermost first): [rows, bytes of a row]."""
        box = np.full(self.box, self._fill_value(), self.array.dtype)
        inside, of_box = self._overlap(coordinates)
        box[of_box] = self._part(inside)
        return box.reshape(-1, self.box[-1]).view(np.uint8)

    def check_write(self, coordinates: Sequence[int]) -> None:
        """Raise Fault where a box at these coordinates must not be written: asked when the copy is issued."""
        if min(coordinates) < 0:  # not in the PTX manual; an H200 answers with "illegal instruction"
            raise Fault("bulk copy", f"writes a box at {list(coordinates)}: what is written begins at 0 or later")
        if not self.array.flags.writeable:
            raise Fault("read-only", f"writes a box at {list(coordinates)} of a tensor, which is read-only")
        self._check_end(self._overlap(coordinates)[0])

    def write(self, coordinates: Sequence[int], data: np.ndarray, combine: Callable | None = None) -> None:
        """Write the part of a box that is in bounds; `combine` makes the new value of the old and the given one."""
        box = np.ascontiguousarray(data).reshape(-1).view(self.array.dtype).reshape(self.box)
        inside, of_box = self._overlap(coordinates)
        given = box[of_box]
        part = self._part(inside)
        if combine is None:
            part[...] = given
        else:
            view = TYPES[self.type]
            part[...] = combine(np.ascontiguousarray(part).view(view), given.view(view)).view(part.dtype)

    def _check_end(self, inside: tuple[slice, ...]) -> None:
        """Not in the PTX manual; an H200 writes whole chunks of 16 bytes, also past the end of a row."""
        row_bytes = self.array.shape[-1] * self.itemsize
        if inside[-1].stop * self.itemsize == row_bytes and row_bytes % 16 and inside[-1].stop > inside[-1].start:
            raise Fault("bulk copy", f"writes past the end of rows of {row_bytes} bytes, up to a multiple of 16")

    def _overlap(self, coordinates: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """The part of the box that is in bounds, as slices of the array and of the box."""
        inside, of_box = [], []
        for start, size, length in zip(reversed(coordinates), self.box, self._sizes, strict=True):
            low, high = min(max(start, 0), length), max(min(start + size, length), 0)
            high = max(low, high)
            inside.append(slice(low, high))
            of_box.append(slice(low - start, high - start) if high > low else slice(0, 0))
        self._part(tuple(inside))
        return tuple(inside), tuple(of_box)

    def _part(self, inside: tuple[slice, ...]) -> np.ndarray:
        """A part of the tensor, which has to be in memory. Of 64 bits, strides may add up to a step back."""
        array, shape = self.array, tuple(along.stop - along.start for along in inside)
        if not self._is_view or 0 in shape:
            return np.empty(shape, array.dtype) if 0 in shape else array[inside]
        steps = [(along.start, stride) for along, stride in zip(inside, array.strides, strict=True)]
        first = sum(start * stride for start, stride in steps) % ADDRESSES
        last = first + sum((size - 1) * stride for size, stride in zip(shape, array.strides, strict=True))
        room = self._end - array.ctypes.data
        if last + self.itemsize > room:
            at = [f"{along.start}:{along.stop}" for along in inside]
            raise Fault("bulk copy", f"accesses [{', '.join(at)}] of a tensor, beyond the array that it begins in")
        memory = np.frombuffer((ctypes.c_char * room).from_address(array.ctypes.data), np.uint8)
        return as_strided(memory[first : first + self.itemsize].view(array.dtype), shape, array.strides)

    def _fill_value(self) -> float:
        if self.fill != "nan":
            return 0
        return np.nan if self.array.dtype.kind == "f" else NAN_BITS[self.type]

    def _check(self) -> None:
        """The rules of cuTensorMapEncodeTiled."""
        array, inner = self.array, self.box[-1] * self.array.itemsize
        rules = [
            (1 <= array.ndim <= 5, f"1 to 5 dimensions, got {array.ndim}"),
            (len(self.box) == array.ndim, f"one box size for each of {array.ndim} dimensions, got {self.box}"),
            (array.ctypes.data % 16 == 0, "an address that is a multiple of 16 bytes"),
            (array.strides[-1] == array.itemsize, "an innermost dimension without gaps"),
            (
                all(s % 16 == 0 for s in array.strides[:-1]),
                f"strides that are multiples of 16 bytes, got {array.strides}",
            ),
            (all(1 <= b <= 256 for b in self.box), f"box sizes from 1 to 256, got {self.box}"),
            (inner % 16 == 0, f"an innermost box size of a multiple of 16 bytes, got {inner}"),
            (self.swizzle in (0, 32, 64, 128), f"a swizzle of 0, 32, 64 or 128 bytes, got {self.swizzle}"),
            (
                not self.swizzle or inner <= self.swizzle,
                f"an innermost box of at most {self.swizzle} bytes, got {inner}",
            ),
            (self.fill in ("zero", "nan"), f"a fill of 'zero' or 'nan', got '{self.fill}'"),
        ]
        for holds, rule in rules:
            if not holds:
                raise LaunchError(f"a tensor map needs {rule}")


def from_bytes(data: bytes) -> TensorMap | None:
    """The map that `to_bytes` made these bytes for."""
    if not data.startswith(_MAGIC):
        return None
    return _registry.get(int.from_bytes(data[len(_MAGIC) : len(_MAGIC) + 8], "little"))
