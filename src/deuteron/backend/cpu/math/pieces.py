"""Functions of floats by pieces: polynomials whose coefficients are looked up in registers of AVX-512.

    looked_up(b, places, table)                  an element of 32 for each lane, by one instruction (VPERMI2PS)
    evaluate_piece(b, places, t, (c0, ... c5))   c0 + (t + t (c1 + t (c2 + ...))), each a table of 32

Narrow vectors are widened, so that an element has the same bits in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.intrinsics import VPERMI2PS
from deuteron.backend.llvm.types import Value, element, vector, vector_const, width
from deuteron.backend.math.polynomial import fused
from deuteron.backend.math.vectors import concatenated
from deuteron.machine.cpu import CPU

LANES = 16
Table = Sequence[float]


def has_pieces(type: str, target: CPU) -> bool:
    """Whether functions of a type are computed so on a CPU."""
    return element(type) == "float" and target.vector_bits >= 512


def by_registers(b: Builder, x: Value, function: Callable[[Builder, Value], Value]) -> Value:
    """A function of 16 lanes, of as many as x has."""
    lanes = width(x.type)
    if lanes == 1:
        return b.extractelement(function(b, b.splat(x, LANES)), 0)
    if lanes < LANES:
        wide = b.shufflevector(x, None, [lane % lanes for lane in range(LANES)])
        return b.shufflevector(function(b, wide), None, range(lanes))
    parts = [range(first, first + LANES) for first in range(0, lanes, LANES)]
    return concatenated(b, [function(b, b.shufflevector(x, None, part)) for part in parts])


def evaluate_piece(b: Builder, places: Value, t: Value, tables: Sequence[Table]) -> Value:
    """The first coefficient of t is kept less 1, which costs an addition and saves a rounding near 0."""
    whole, *coefficients = (looked_up(b, places, table) for table in tables)
    slope = coefficients.pop()
    while coefficients:
        slope = fused(b, slope, t, coefficients.pop())
    return b.fadd(whole, fused(b, t, slope, t), flags="")


def looked_up(b: Builder, places: Value, table: Table) -> Value:
    """By the low 5 bits of each place."""
    low, high = (vector_const("float", table[first : first + LANES]) for first in (0, LANES))
    return b.call(vector("float", LANES), VPERMI2PS, low, places, high)
