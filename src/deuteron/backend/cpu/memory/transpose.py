"""Writes the transpose of a buffer, block by block in registers.

    emit_transpose(b, source, target, rows=64, columns=32, source_stride=32, target_stride=64, type="float")
    target[j, i] = source[i, j]

The matrix product wants B as [k, n]; attention has it as [n, k]. Copying it over once costs less than a product that
reads it the other way: 64 x 64 floats take 0.3 us where the product with 64 rows takes 3.2 us, and dot products along k
would need a horizontal sum for each element of C.

A block of 8 x 8 (4 x 4 of 8 bytes, the rest smaller) is transposed in log2 steps. The step for s swaps, in every pair
of rows i and i + s, the part of row i that has bit s set in its column with the part of row i + s that has not:

    a b | c d        a b | A B
    A B | C D   ->   c d | C D         s = 2, on rows 0 and 2

Elements of one or two bytes take as many steps as words of four; so of those that are to be neighbours first words are
made: A of bf16 that is loaded down its columns was copied in 400 us, and is in 190.
"""

from __future__ import annotations

from deuteron.backend.cpu.products.packing import interleaved
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, element, vector, width


def emit_transpose(
    b: Builder, source: Value, target: Value, rows: int, columns: int, source_stride: int, target_stride: int, type: str
) -> None:
    """Transpose a [rows, columns] buffer of powers of two; strides are in elements."""
    size = min(32 // byte_width(type), 8, rows, columns)
    zero, step = const("i64", 0), const("i64", size)
    with (
        b.loop(zero, const("i64", rows), step, hint="row") as row,
        b.loop(zero, const("i64", columns), step, hint="column") as column,
    ):
        lines = []
        for i in range(size):
            index = b.mul(b.add(row.index, const("i64", i)), const("i64", source_stride))
            lines.append(b.load(vector(type, size), b.gep(type, source, b.add(index, column.index))))
        for i, line in enumerate(exchange_lanes(b, lines)):
            index = b.mul(b.add(column.index, const("i64", i)), const("i64", target_stride))
            b.store(line, b.gep(type, target, b.add(index, row.index)))


def exchange_lanes(b: Builder, lines: list[Value]) -> list[Value]:
    """Rows of a square to its columns: as many vectors as each has lanes."""
    size = len(lines)
    s = size // 2
    while s:
        swapped = list(lines)
        for i in range(size):
            if not i & s:
                upper = [j if not j & s else size + j - s for j in range(size)]
                lower = [j + s if not j & s else size + j for j in range(size)]
                swapped[i] = b.shufflevector(lines[i], lines[i + s], upper)
                swapped[i + s] = b.shufflevector(lines[i], lines[i + s], lower)
        lines, s = swapped, s // 2
    return lines


def exchange_words(b: Builder, lines: list[Value]) -> list[Value]:
    """The columns of two or four times as many lines as each has lanes: neighbours are exchanged as one word."""
    type, lanes = element(lines[0].type), width(lines[0].type)
    group = len(lines) // lanes
    word = vector(f"i{8 * byte_width(type) * group}", lanes)
    words = [b.bitcast(interleaved(b, lines[first : first + group]), word) for first in range(0, len(lines), group)]
    return [b.bitcast(column, vector(type, len(lines))) for column in exchange_lanes(b, words)]
