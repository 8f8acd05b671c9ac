"""Packs the B of a matrix product as the processor's own products take it: neighbours along k in one lane of 32 bits.

    emit_packed(b, source, target, k=64, n=32, stride=32, product=BF16_PAIRS)

    source   b00 b01 b02 ...        target   b00 b10 | b01 b11 | b02 b12 | ...
             b10 b11 b12 ...                 b20 b30 | b21 b31 | ...
             b20 ...

The transpose of B has neighbours along k side by side: there whole lanes are transposed (`transpose.py`).
"""

from __future__ import annotations

from deuteron.backend.cpu.products.products import LANES, NativeProduct
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, vector, width


def emit_packed(b: Builder, source: Value, target: Value, k: int, n: int, stride: int, product: NativeProduct) -> None:
    """Write the lanes [k / group, n] of a row-major [k, n], n in whole vectors; `stride` is between its rows."""
    zero, group, element = const("i64", 0), product.group, product.element
    with (
        b.loop(zero, const("i64", k), const("i64", group), hint="k") as step,
        b.loop(zero, const("i64", n), const("i64", LANES), hint="column") as column,
    ):
        first = b.add(b.mul(step.index, const("i64", stride)), column.index)
        places = [b.add(first, const("i64", row * stride)) for row in range(group)]
        rows = [b.load(vector(element, LANES), b.gep(element, source, place), 1) for place in places]
        lanes = b.bitcast(interleaved(b, rows), vector(product.lane, LANES))
        offset = b.add(b.mul(step.index, const("i64", n // group)), column.index)
        b.store(lanes, b.gep(product.lane, target, offset))


def interleaved(b: Builder, rows: list[Value]) -> Value:
    """The first elements of all rows, the second ones, ..."""
    count = len(rows)
    while len(rows) > 1:
        rows = [_joined(b, *rows[i : i + 2]) for i in range(0, len(rows), 2)]
    (joined,) = rows
    lanes = width(joined.type) // count
    return b.shufflevector(joined, joined, [row * lanes + lane for lane in range(lanes) for row in range(count)])


def _joined(b: Builder, first: Value, second: Value) -> Value:
    return b.shufflevector(first, second, list(range(2 * width(first.type))))
