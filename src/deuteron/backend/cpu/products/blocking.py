"""How a matrix product is cut into blocks of C that stay in registers, and which strip of B each of them reads.

    for first, last, columns in block_steps(n, 32, 16):         of vectors and of tiles alike
        for top, bottom, rows in block_steps(m, 8, 1):          8 rows of 2 vectors; of tiles 32 rows

A panel is the strip of B that the blocks of one column read, where that is in one place: row after row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const

TILE = 16  # rows of a tile of AMX, and lanes of each
# fp32 of 1,024 has 0.96 and 0.95 of MKL's speed with 8 rows of two vectors, 0.99 and 1.02 with 6 of four, in
# tiles of 128 x 128 and 256 x 256 on a Sapphire Rapids; of 64 rows they have 0.93 and 0.90.
_MANY_ROWS, _WIDE_REGISTERS = 128, 32
_TILES = 2  # of a block of C, along either side: four tiles of C, two of A and two of B are all that there are


@dataclass(frozen=True)
class MatmulShape:
    """C[m, n] += A[m, k] @ B[k, n]; the distances between rows are in elements.

    `panel`: the distance between panels of B, where it is in panels of as many columns as a block has, else 0.
    """

    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int
    panel: int = 0

    def strip(self, columns: int) -> int:
        """How far the strip of B begins that so many columns further on are computed from, for each of them."""
        return self.panel // columns if self.panel else 1


class Operands(NamedTuple):
    """Where the matrices of C += A @ B begin."""

    a: Value
    b: Value
    c: Value


class Given(NamedTuple):
    """What of a product only the running program knows, or the loop around it.

    `depth`: how many lanes there are along k where that is not the shape's k, but a multiple of it. `from_zero`:
    C = A @ B. `row_bytes`: how far the rows of A are apart, which may begin anywhere then. `needed_rows`,
    `needed_columns`: how many of C have to be there.
    """

    depth: Value | None = None
    from_zero: bool | Value = False
    row_bytes: Value | None = None
    needed_rows: Value | None = None
    needed_columns: Value | None = None


NOTHING = Given()


@dataclass(frozen=True)
class Blocking:
    """How much of C is in registers at once: rows by vectors of `vector_width` elements; steps of k in a row."""

    rows: int
    vectors: int
    vector_width: int
    unroll: int

    @property
    def columns(self) -> int:
        return self.vectors * self.vector_width


def choose_blocking(shape: MatmulShape, vector_width: int, registers: int) -> Blocking:
    """Accumulators fill half of the registers: enough to hide the latency of two multiply-adds a cycle.

    Two vectors wide, where C is: for each step of k that is rows + 2 loads for 2 * rows multiply-adds. Of many rows,
    which are not in the first cache when the next columns read them again, four.
    """
    width = min(vector_width, power_of_two_at_most(shape.n))
    if registers >= _WIDE_REGISTERS and shape.m >= _MANY_ROWS and shape.n >= 4 * width:
        return Blocking(6, 4, width, depth_step(shape.k))
    accumulators = registers // 2
    vectors = min(2, shape.n // width)
    rows = min(accumulators // vectors, shape.m)
    vectors = min(accumulators // rows, shape.n // width)
    return Blocking(rows, vectors, width, depth_step(shape.k))


def depth_step(k: int) -> int:
    """How many steps along k a block on vectors is computed in at a time."""
    return 4 if k % 4 == 0 else 1


def block_columns(m: int, n: int, vector_width: int, registers: int) -> int:
    """How many columns a block has that is computed on vectors."""
    return choose_blocking(MatmulShape(m, n, 1, 1, n, n), vector_width, registers).columns


def tile_columns(n: int) -> int:
    """How many columns a block has that is computed on tiles."""
    return min(_TILES * TILE, n)


def block_steps(size: int, step: int, unit: int) -> Iterator[tuple[int, int, int]]:
    """(start, stop, step) of one loop of full steps, then of what is left in multiples of the unit, then of less."""
    start = 0
    while start < size:
        while step > size - start:
            step = size - start if unit == 1 else (size - start) // unit * unit or power_of_two_at_most(size - start)
        stop = start + (size - start) // step * step
        yield start, stop, step
        start = stop


def needed_blocks(
    b: Builder, size: int, whole: int, unit: int, needed: Value | None
) -> Iterator[tuple[Value, Value, int]]:
    """(start, stop, step) of the loops over rows or columns: blocks of `whole`, as many as are `needed`. Of one or two
    blocks those that are filled by more than half, and one of half as many for what is left: where there are more,
    that would be more to compile than is saved.
    """
    for first, last, step in block_steps(size, whole, unit):
        top, bottom, half = const("i64", first), const("i64", last), step // 2
        if needed is None:
            yield top, bottom, step
            continue
        end = b.umax(b.umin(needed, bottom), top)
        if last - first > 2 * step or half % unit or not half:
            yield top, end, step
            continue
        filled = b.add(b.sub(end, top), const("i64", half - 1))
        middle = b.add(top, b.mul(b.udiv(filled, const("i64", step)), const("i64", step)))
        yield top, middle, step
        yield middle, end, half


def power_of_two_at_most(number: int) -> int:
    return 1 << (number.bit_length() - 1)
