"""The mode `cpu/pages`: of each array no more is there than what the interpreter accesses, between pages that fault.

    launch_on_pages(case, kernel, launch, values)       an overrun ends the process, which counts as an `abort`

What is accessed is what the text that the CPU got does, run by the interpreter. By lot an array has its last byte
before such a page or its first byte after one; half of the programs know nothing of where their arrays begin, so that
these end at the last byte, or one byte from it, where elements lie in two words. So a vector that is loaded where lanes
are off, a row that is read ahead, or the element after the last one, is found.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from deuteron.compiler import CompiledKernel
from deuteron.interpreter.allocation import Buffer, Memory
from deuteron.interpreter.arguments import bind_arguments
from deuteron.interpreter.executor import Executor, kernel_of
from deuteron.interpreter.rules import RULES
from deuteron.ir.text import parse_module
from tests.fuzz.case import POISON, Case

AT_END = 0.7  # of the arrays
_ALIGNED = 16
_PROT_NONE = 0

_mprotect = ctypes.CDLL(None, use_errno=True).mprotect
_mprotect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


def knows_alignment(case: Case) -> bool:
    """Whether the kernel is told that arrays begin at multiples of 16."""
    return case.seed % 4 < 2


def gap_of(case: Case) -> int:
    """How many bytes are between arrays and their pages. A lock on two lines may stop a processor for milliseconds."""
    return int(case.seed % 4 == 3 and "atomic" not in case.source)


def launch_on_pages(case: Case, kernel: CompiledKernel, launch: Callable[[list[Any]], None], values: list[Any]) -> None:
    """`launch(passed)`, of addresses and numbers; the arrays get what it stored."""
    rng = np.random.default_rng([case.seed, 2])
    touched = touched_bytes(case, parse_module(kernel.asm["ttir"]))
    alignment = _ALIGNED if knows_alignment(case) else 1
    pages = {
        number: Pages(value, touched.get(number, range(0)), alignment if rng.random() < AT_END else 0, gap_of(case))
        for number, value in enumerate(values)
        if isinstance(value, np.ndarray)
    }
    launch([pages[number].pointer if number in pages else value for number, value in enumerate(values)])
    for number, own in pages.items():
        own.take_back(case.arguments[number].name)


def touched_bytes(case: Case, module: Any) -> dict[int, range]:
    """Of arrays, by the number of the argument, from the first to the last byte that is accessed."""
    values = case.values()
    bound, buffers = bind_arguments(kernel_of(module), values)
    memory = _WatchedMemory(list(buffers.values()))
    grid = (*case.grid, 1, 1)[:3]
    executor = Executor(grid, memory, buffers, rules=RULES)
    with np.errstate(all="ignore"):
        for z, y, x in product(*map(range, reversed(grid))):
            executor.program_id = x, y, z
            executor.run_block(kernel_of(module).body.block, bound)
    numbers = {value.ctypes.data: number for number, value in enumerate(values) if isinstance(value, np.ndarray)}
    return {numbers[address]: range(low - address, high - address) for address, (low, high) in memory.reached.items()}


class _WatchedMemory(Memory):
    """Keeps, by the address of each buffer, the lowest and the highest address that was accessed."""

    def __init__(self, buffers: list[Buffer]):
        super().__init__(buffers)
        self.reached: dict[int, tuple[int, int]] = {}

    def resolve(self, addresses, dtype, buffer=None, writes=False):
        low, high = int(addresses.min()), int(addresses.max()) + dtype.itemsize
        found = buffer or self._find(low, high)
        if found is not None:
            lowest, highest = self.reached.get(found.address, (low, high))
            self.reached[found.address] = min(low, lowest), max(high, highest)
        return super().resolve(addresses, dtype, buffer, writes)


class Pages:
    """A part of an array between two pages that nothing may touch; what is left of the pages in between is watched.

    `pointer`: where the whole array would begin. `alignment`: of it, where the part is at the end of its pages; 0: at
    the beginning. `gap`: between the part and its end, or the beginning.
    """

    def __init__(self, array: np.ndarray, part: range, alignment: int, gap: int = 0):
        self._elements = array.view(np.uint8)[part.start : part.stop]
        size = -(-(len(part) + _ALIGNED) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._mapping = mmap.mmap(-1, size + 2 * mmap.PAGESIZE)
        mapped = np.frombuffer(self._mapping, np.uint8)
        for guard in (0, size + mmap.PAGESIZE):
            if _mprotect(mapped.ctypes.data + guard, mmap.PAGESIZE, _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._room = mapped[mmap.PAGESIZE : mmap.PAGESIZE + size]
        self._room[:] = POISON
        begin = size - len(part) - gap if alignment else part.start % _ALIGNED + gap
        self._begin = begin - (begin - part.start) % (alignment or 1)
        self.pointer = self._room.ctypes.data + self._begin - part.start
        self._own[:] = self._elements

    @property
    def _own(self) -> np.ndarray:
        return self._room[self._begin : self._begin + len(self._elements)]

    def take_back(self, name: str) -> None:
        """Into the array; raises where memory beside the part was written."""
        self._elements[:] = self._own
        self._own[:] = POISON
        if (self._room != POISON).any():
            raise AssertionError(f"memory beside {name} was written")
