"""Products of few rows with a matrix that is read once, where it is: C[rows, columns] += A @ B, some rows at a time.

    B by rows                                           B by columns
    for chunks of k, for 64 columns, for rows:          for 4 columns, for pairs of rows, and the last one:
        sums[4][4] = C                                      sums[2][4] = 0
        for k: sums[r][v] += A[r, k] * B[k, 16v ...]        for k: sums[r][c] += A[r, k ...] * B[k ..., c]
        C = sums                                            C += the lanes of each

B by rows is read for eight rows with two vectors of columns at a time, then for four and for two with four; with 16
registers for four and two. The last row, or the last of B's columns, is computed several times where there are too few;
columns of B by rows that are left over are masked. Rows of B are each on another page, and a part of them is read, so
that no processor fetches them ahead: they are asked for. Narrow floats are widened as they are loaded; where the
processor multiplies pairs of them, or quads of bytes, columns are multiplied as those. Of a product that takes bytes
without a sign B has 128 more, and what that adds to a sum, 128 times the sum of a row of A, is taken off. (With 128
more in A LLVM did not come to an end.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from deuteron.backend.cpu.products.products import NativeProduct, VectorProduct, plain_product
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, vector, vector_const, zero
from deuteron.machine.cpu import CPU

_BYTES = 4  # of an element of C
_FLOATS = plain_product("float")
_VECTORS, _COLUMNS = 4, 4  # eight sums with two rows: enough to hide the latency of two multiply-adds a cycle
_FEWEST_VECTORS, _PAIR = 2, 2
# How many rows of B ahead. Of torch's speed one, four and eight rows of 2,048 have 0.4, 1.2, 0.8 on a Zen 4 with 0,
# 0.86, 3.3, 2.2 with 32 and 0.86, 3.1, 2.5 with 64; on an Emerald Rapids, whose caches hold B, 0.95, 0.97, 0.44 with 0,
# 0.84, 0.98, 0.57 with 32 and 0.90, 1.09, 0.72 with 64 (eight as two fours). Asked for into the first cache they have
# 0.45, 1.7 and 1.6 on the Zen 4.
_AHEAD = 64
_LINE_BYTES = 64  # of the caches


class Strided(NamedTuple):
    """Where a matrix begins, and how many bytes its rows, or columns, are apart that are not neighbours."""

    first: Value
    distance: Value


class Size(NamedTuple):
    """Of a product, as the running program knows it."""

    rows: Value
    columns: Value
    depth: Value


class Most(NamedTuple):
    """How many rows there may be, and how deep a part of B's columns is read at a time."""

    rows: int
    depth: int


@dataclass(frozen=True)
class Elements:
    """The LLVM type of A's and B's elements, what makes floats of them, and the product of groups of them along k, if
    any.
    """

    type: str
    widen: Callable[[Builder, Value], Value]
    product: NativeProduct | None = None


@dataclass(frozen=True)
class RowProducts:
    """C[rows, columns] += A @ B; C's rows are `c_pitch` bytes apart."""

    b: Builder
    a: Strided
    bm: Strided
    c: Value
    c_pitch: int
    size: Size
    most: Most
    elements: Elements
    target: CPU

    def emit(self, b_is_by_columns: bool, from_zero: bool) -> None:
        """`from_zero`: C = A @ B. Without any depth C stays as it is, negative zeros too."""
        b = self.b
        with b.if_(b.icmp("ne", self.size.depth, const("i64", 0)), "multiply"):
            if from_zero:
                self.clear()
            if b_is_by_columns:
                self.by_columns()
            else:
                self.by_rows()

    @property
    def lanes(self) -> int:
        return self.target.vector_width(8 * _BYTES)

    @property
    def type(self) -> str:
        return vector(self._product.total, self.lanes)

    def clear(self) -> None:
        """C = 0, of whole vectors."""
        b = self.b
        with (
            b.loop(const("i64", 0), self.size.rows, const("i64", 1), hint="row") as row,
            b.loop(const("i64", 0), self.size.columns, const("i64", self.lanes), hint="column") as column,
        ):
            b.store(zero(self.type), self._c(row.index, column.index), _BYTES)

    def by_rows(self) -> None:
        b, width = self.b, self.lanes * _VECTORS
        whole = b.and_(self.size.columns, const("i64", -width))
        with b.loop(const("i64", 0), self.size.depth, const("i64", self.most.depth), hint="chunk") as chunk:
            with b.loop(const("i64", 0), whole, const("i64", width), hint="column") as column:
                self._groups_of_rows(chunk.index, column.index)
            with b.loop(whole, self.size.columns, const("i64", self.lanes), hint="column") as column:
                left = b.trunc(b.sub(self.size.columns, column.index), "i32")
                mask = b.icmp("ult", vector_const("i32", range(self.lanes)), b.splat(left, self.lanes))
                self._rows_of(chunk.index, column.index, const("i64", 0), self.size.rows, _PAIR, 1, mask)

    def _groups_of_rows(self, k: Value, column: Value) -> None:
        """As many rows at a time as sums fill half of the registers with, down to pairs. Three of eight may be computed
        twice, one of four: B is read again for each group.
        """
        b, sums, first = self.b, self.target.vector_registers // 2, const("i64", 0)
        for vectors in (_FEWEST_VECTORS, _VECTORS):
            count = sums // vectors
            twice = 3 * count // 8
            if _PAIR < count <= self.most.rows + twice:
                last = b.and_(b.add(self.size.rows, const("i64", twice)), const("i64", -count))
                end, width = b.add(column, const("i64", _VECTORS * self.lanes)), const("i64", vectors * self.lanes)
                with b.loop(column, end, width, hint="part") as part:
                    self._rows_of(k, part.index, first, last, count, vectors, None)
                first = b.umax(first, last)
        self._rows_of(k, column, first, self.size.rows, _PAIR, _VECTORS, None)

    def _rows_of(
        self, k: Value, column: Value, first: Value, last: Value, count: int, vectors: int, mask: Value | None
    ) -> None:
        b, lanes = self.b, self.lanes
        with b.loop(first, last, const("i64", count), hint="row") as loop_of_rows:
            rows = self._rows_from(loop_of_rows.index, count)
            ahead = self._ahead(loop_of_rows.index)
            places = [self._at(self._c(row, column), v * lanes) for row in rows for v in range(vectors)]
            a_rows = [self._element(self._row(self.a, row), k) for row in rows]
            sums = [self._load(place, mask) for place in places]
            end = b.umin(const("i64", self.most.depth), b.sub(self.size.depth, k))
            with b.loop(const("i64", 0), end, const("i64", 1), sums, "k") as loop:
                line = self._element(self._row(self.bm, b.add(k, loop.index)), column)
                if mask is None:
                    self._ask_for(b.gep("i8", line, ahead), vectors)
                right = [self._widened(self._element(line, const("i64", v * lanes)), mask) for v in range(vectors)]
                left = [b.splat(self._widened_element(self._element(row, loop.index)), lanes) for row in a_rows]
                loop.next(*self._multiply_add(left, right, loop.carried))
            for place, total in zip(places, loop.results, strict=True):
                self._store(total, place, mask)

    def _ahead(self, row: Value) -> Value:
        """How far from a row of B, in bytes, the one is that is asked for, once for all rows of A."""
        b, (_, distance) = self.b, self.bm
        is_first = b.icmp("eq", row, const("i64", 0))
        return b.select(is_first, b.mul(distance, const("i64", _AHEAD)), const("i64", 0))

    def _ask_for(self, line: Value, vectors: int) -> None:
        """The part of a row of B that is multiplied at a time. The line that it begins in the middle of was asked for
        with the part before.
        """
        num_bytes = vectors * self.lanes * byte_width(self.elements.type)
        for offset in range(min(num_bytes, _LINE_BYTES) - 1, num_bytes, _LINE_BYTES):
            self.b.prefetch_to_second_cache(self.b.gep("i8", line, const("i64", offset)))

    def by_columns(self) -> None:
        b, pairs = self.b, self.b.and_(self.size.rows, const("i64", -_PAIR))
        with b.loop(const("i64", 0), self.size.columns, const("i64", _COLUMNS), hint="column") as column:
            for first, last, count in ((const("i64", 0), pairs, _PAIR), (pairs, self.size.rows, 1)):
                with b.loop(first, last, const("i64", count), hint="row") as row:
                    self._columns_of(self._rows_from(row.index, count), self._columns_from(column.index))

    def _columns_of(self, rows: list[Value], columns: list[Value]) -> None:
        b, count = self.b, len(columns)
        a_rows, lines = [self._row(self.a, row) for row in rows], [self._row(self.bm, own) for own in columns]
        whole, has_excess = b.and_(self.size.depth, const("i64", -self._depth)), bool(self._product.excess)
        sums = [zero(self.type)] * (len(rows) * (count + has_excess))
        for first, last, is_rest in ((const("i64", 0), whole, False), (whole, self.size.depth, True)):
            with b.loop(first, last, const("i64", self._depth), sums, "k") as loop:
                mask = self._mask(loop.index) if is_rest else None
                left, right = (
                    [self._along_k(self._element(line, loop.index), mask) for line in own] for own in (a_rows, lines)
                )
                loop.next(*self._multiply_add_groups(left, right, loop.carried))
            sums = loop.results
        places = [self._c(row, own) for row in rows for own in columns]
        before = [b.load(self._product.total, place, _BYTES) for place in places]
        if has_excess:
            excess, totals = sums[: len(rows)], sums[len(rows) :]
            sums = [b.sub(total, excess[number // count]) for number, total in enumerate(totals)]
        for place, start, total in zip(places, before, sums, strict=True):
            b.store(self._add(start, self._sum_of_lanes(total)), place, _BYTES)

    def _rows_from(self, row: Value, count: int) -> list[Value]:
        return self._from(row, count, self.size.rows)

    def _columns_from(self, column: Value) -> list[Value]:
        return self._from(column, _COLUMNS, self.size.columns)

    def _from(self, first: Value, count: int, end: Value) -> list[Value]:
        """So many numbers, the last one before the end several times."""
        b, last = self.b, self.b.sub(end, const("i64", 1))
        return [first, *(b.umin(b.add(first, const("i64", number)), last) for number in range(1, count))]

    def _sum_of_lanes(self, lanes: Value) -> Value:
        b, count = self.b, self.lanes
        while count > 1:
            count //= 2
            halves = (b.shufflevector(lanes, None, range(start, start + count)) for start in (0, count))
            lanes = self._add(*halves)
        return b.extractelement(lanes, 0)

    @property
    def _product(self) -> VectorProduct:
        """Of columns, of which vectors run along k."""
        return self.elements.product or _FLOATS

    @property
    def _depth(self) -> int:
        """How many elements along k those vectors have."""
        return self.lanes * (self.elements.product.group if self.elements.product else 1)

    def _mask(self, k: Value) -> Value:
        """Which elements of vectors along k there are."""
        b, left = self.b, self.b.trunc(self.b.sub(self.size.depth, k), "i32")
        return b.icmp("ult", vector_const("i32", range(self._depth)), b.splat(left, self._depth))

    def _along_k(self, place: Value, mask: Value | None) -> Value:
        if self.elements.product is None:
            return self._widened(place, mask)
        b, num_bytes = self.b, byte_width(self.elements.type)
        lanes = vector(self.elements.product.lane, self.lanes)
        if mask is None:
            return b.load(lanes, place, num_bytes)
        return b.bitcast(b.masked_load(vector(self.elements.type, self._depth), place, num_bytes, mask), lanes)

    def _multiply_add(self, left: list[Value], right: list[Value], sums: list[Value]) -> list[Value]:
        """The sums of each row with each vector, row by row."""
        return self._products(_FLOATS, [(x, y) for x in left for y in right], sums)

    def _multiply_add_groups(self, left: list[Value], right: list[Value], sums: list[Value]) -> list[Value]:
        """The sums of each row with each column, row by row; after what is in excess in each row, if anything is."""
        b, product = self.b, self._product
        if not product.excess:
            return self._products(product, [(x, y) for x in left for y in right], sums)
        excess = [product.add_excess(b, x, total) for x, total in zip(left, sums, strict=False)]
        right = [b.xor(y, const(y.type, product.excess * 0x01010101)) for y in right]
        return excess + self._products(product, [(y, x) for x in left for y in right], sums[len(left) :])

    def _products(self, product: VectorProduct, pairs: list[tuple[Value, Value]], sums: list[Value]) -> list[Value]:
        return [product.multiply_add(self.b, *pair, total) for pair, total in zip(pairs, sums, strict=True)]

    def _add(self, x: Value, y: Value) -> Value:
        return self.b.add(x, y) if self._product.total == "i32" else self.b.fadd(x, y)

    def _widened(self, place: Value, mask: Value | None) -> Value:
        """Floats of the elements at a place."""
        b, type, num_bytes = self.b, vector(self.elements.type, self.lanes), byte_width(self.elements.type)
        narrow = b.load(type, place, num_bytes) if mask is None else b.masked_load(type, place, num_bytes, mask)
        return self.elements.widen(b, narrow)

    def _widened_element(self, place: Value) -> Value:
        type = self.elements.type
        return self.elements.widen(self.b, self.b.load(type, place, byte_width(type)))

    def _element(self, line: Value, number: Value) -> Value:
        return self.b.gep(self.elements.type, line, number)

    def _load(self, place: Value, mask: Value | None) -> Value:
        if mask is None:
            return self.b.load(self.type, place, _BYTES)
        return self.b.masked_load(self.type, place, _BYTES, mask)

    def _store(self, value: Value, place: Value, mask: Value | None) -> None:
        if mask is None:
            self.b.store(value, place, _BYTES)
        else:
            self.b.masked_store(value, place, _BYTES, mask)

    def _row(self, matrix: Strided, number: Value) -> Value:
        first, distance = matrix
        return self.b.gep("i8", first, self.b.mul(number, distance))

    def _c(self, row: Value, column: Value) -> Value:
        first = self.b.gep("i8", self.c, self.b.mul(row, const("i64", self.c_pitch)))
        return self.b.gep("float", first, column)

    def _at(self, place: Value, number: int) -> Value:
        return self.b.gep("float", place, const("i64", number)) if number else place
