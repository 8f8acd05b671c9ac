"""Computes the only row of a product that is needed, with B as it is computed (`plan/products/single_rows.py`).

    if one row is needed:                               B along its rows        B down its columns
        for columns, some vectors or eight:             sums = 0                sums of 8 columns = 0
            for k, or a vector along it:                sums += A[0, k] * B     those += A[0, k ...] * B
            C[0, columns] += sums                                               the lanes of each are added up

The lanes of several columns are added up together: in each step two vectors become one, of the sums of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from deuteron.backend.cpu.algebra import as_vector
from deuteron.backend.cpu.context import AxisIndex, Context, Row
from deuteron.backend.cpu.emitter import OpenLoop
from deuteron.backend.cpu.fragment import Axis, Fragment
from deuteron.backend.cpu.memory.formats import from_memory
from deuteron.backend.cpu.memory.places import address
from deuteron.backend.cpu.plan.items import Dot
from deuteron.backend.cpu.plan.roots import RowRoot
from deuteron.backend.cpu.rules.matrix import elements_needed, first_row_of_a
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, vector, width, zero
from deuteron.ir.types import bf16, shape_of

_BYTES = 4  # of an element of C


def count_single_rows(ctx: Context, item: Dot) -> Value:
    """How many iterations of a loop, from the first on, compute a single row: all, or none."""
    rows = elements_needed(ctx, item.needed_rows, shape_of(item.op.result.type)[0])
    b = ctx.emitter.innermost()
    return b.select(b.icmp("eq", rows, const("i64", 1)), const("i64", -1), const("i64", 0))


def if_single(ctx: Context, item: Dot, emit_row: Callable[[], None]) -> None:
    """Emit the row that this iteration computes, if it does."""
    is_not = ctx.emitter.innermost().xor(ctx.products.computed_before[item], const("i1", 1))
    ctx.emitter.unless(is_not, lambda: _emit_single(ctx, item, emit_row), "single_row")


def _emit_single(ctx: Context, item: Dot, emit_row: Callable[[], None]) -> None:
    ctx.products.row = Row(first_row_of_a(ctx, item), address(ctx, item.result), _begins(ctx, item))
    emit_row()
    ctx.products.row = None


def _begins(ctx: Context, item: Dot) -> Value:
    """Whether the product is added to 0, and not to what C has."""
    if item.from_zero or not item.begins_sums:
        return const("i1", item.from_zero)
    b = ctx.emitter.innermost()
    return b.and_(ctx.step.is_first, b.icmp("eq", ctx.step.number, const("i64", 0)))


class RowSums:
    """The sums of some columns of a row while their loop along k is emitted: a vector for each entry of the nest."""

    def __init__(self, ctx: Context, root: RowRoot, lanes: int):
        self.root = root
        self._ctx, self._lanes = ctx, lanes
        self._sums: list[Value] = []

    def before(self, copies: int) -> list[Value]:
        """The sums before a part of the loop."""
        self._sums = self._sums or [zero(vector("float", self._lanes))] * copies
        return self._sums

    def enter(self, loop: OpenLoop | None, carried: Iterator[Value]) -> None:
        if loop is not None:
            self._sums = [next(carried) for _ in self._sums]

    def combine(self, copy: int, index: AxisIndex, elements: list[Fragment]) -> None:
        """Add the products of one vector of B."""
        b, (right,) = self._ctx.emitter.innermost(), elements
        type, copy = vector("float", self._lanes), copy % len(self._sums)
        left, right = self._left(index[0]), as_vector(self._ctx.emitter, right, self._lanes)
        self._sums[copy] = b.intrinsic("llvm.fmuladd", type, left, right, self._sums[copy])

    def values(self) -> list[Value]:
        return self._sums

    def leave(self, after: Iterator[Value]) -> None:
        self._sums = [next(after) for _ in self._sums]

    def finish(self, axis: int, vectorised: bool, indices: list[AxisIndex]) -> None:
        """Add the sums to C."""
        b, row = self._ctx.emitter.innermost(), self._ctx.products.row
        sums = [_sums_of_lanes(b, self._sums)] if vectorised else self._sums
        for index, total in zip(indices, sums, strict=False):
            place = b.gep("float", row.c, _start(b, index[1]))
            before = b.select(row.begins, zero(total.type), b.load(total.type, place, _BYTES))
            b.store(b.fadd(before, total), place, _BYTES)

    def _left(self, entry: Axis | None) -> Value:
        """The elements of A that are multiplied."""
        b, type = self._ctx.emitter.innermost(), self.root.a.slot.type
        lanes = entry.lanes if entry is not None else 1
        place = b.gep(type, self._ctx.products.row.a, _start(b, entry))
        elements = b.load(vector(type, lanes), place, byte_width(type))
        elements = elements if type == "float" else from_memory(b, elements, bf16, self._ctx.target)
        return elements if lanes > 1 else b.splat(elements, self._lanes)


def _start(b: Builder, entry: Axis | None) -> Value:
    """Where elements begin along a dimension; one of a single element has no loop."""
    return const("i64", 0) if entry is None else b.zext(entry.start, "i64")


def _sums_of_lanes(b: Builder, vectors: list[Value]) -> Value:
    """The sum of the lanes of each of some vectors, as one."""
    count = len(vectors)
    while len(vectors) > 1:
        vectors = [_sums_of_neighbours(b, *vectors[at : at + 2]) for at in range(0, len(vectors), 2)]
    (total,) = vectors
    while width(total.type) > count:
        half = width(total.type) // 2
        low, high = (b.shufflevector(total, None, range(first, 2 * half, 2)) for first in (0, 1))
        total = b.fadd(low, high) if half > 1 else b.fadd(*(b.extractelement(total, lane) for lane in (0, 1)))
    return total


def _sums_of_neighbours(b: Builder, first: Value, second: Value) -> Value:
    lanes = width(first.type)
    even, odd = (b.shufflevector(first, second, range(start, 2 * lanes, 2)) for start in (0, 1))
    return b.fadd(even, odd)
