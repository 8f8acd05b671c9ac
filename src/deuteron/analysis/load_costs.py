"""What a load costs one of a program's threads, where tiles have no layouts yet: accesses, and registers.

    1,024 fp16 at neighbouring, aligned places, of 128 threads      1 access, 4 registers
    the same at places that are not known to be neighbours          8 accesses, 8 registers

What is narrower than a register takes one, if no neighbour comes with it.
"""

from __future__ import annotations

from typing import NamedTuple

from deuteron.analysis.addresses.access_vectors import MAX_BYTES
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.types import byte_width_of, is_tile, num_elements_of, pointee_of

REGISTER_BYTES = 4


class LoadCost(NamedTuple):
    accesses: float
    registers: float


def load_cost(load: LoadOp, info: AxisInfoAnalysis, threads: int) -> LoadCost:
    """Of a thread, as layouts will have neighbours side by side in it, up to the widest access."""
    if not is_tile(load.ptr.type):
        return LoadCost(1, 1)
    size, elements = byte_width_of(pointee_of(load.ptr.type)), max(num_elements_of(load.ptr.type) / threads, 1)
    width = min(max(_neighbours(load, info, size), 1), elements)
    accesses = elements / width
    return LoadCost(accesses, accesses * max(width * size / REGISTER_BYTES, 1))


def _neighbours(load: LoadOp, info: AxisInfoAnalysis, size: int) -> int:
    """How many elements of that size one access may have."""
    pointer = info.of(load.ptr)
    equal = info.of(load.mask).constancy if load.mask is not None else pointer.contiguity
    return max(
        min(contiguity, divisibility // size, constancy, MAX_BYTES // size)
        for contiguity, divisibility, constancy in zip(pointer.contiguity, pointer.divisibility, equal, strict=True)
    )
