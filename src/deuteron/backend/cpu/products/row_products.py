"""Products of few rows with a matrix that is read once, where it is: C[rows, columns] += A @ B, two rows at a time.

    B by rows                                           B by columns
    for chunks of k, for 64 columns, for pairs:         for 4 columns, for pairs:
        sums[2][4] = C                                      sums[2][4] = 0
        for k: sums[r][v] += A[r, k] * B[k, 16v ...]        for k: sums[r][c] += A[r, k ...] * B[k ..., c]
        C = sums                                            C += the lanes of each

Of an odd number of rows the last one is a pair with itself, computed twice. Columns that are left over are masked, or
come one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, const, vector, vector_const, zero

_BYTES = 4
_VECTORS, _COLUMNS = 4, 4  # eight sums with two rows: enough to hide the latency of two multiply-adds a cycle

Strided = tuple[Value, Value]  # where a matrix begins, and how many bytes its rows, or columns, are apart


def emit_row_products(
    b: Builder,
    a: Strided,
    bm: Strided,
    c: tuple[Value, int],
    sizes: tuple[Value, Value, Value],
    *,
    b_is_by_columns: bool,
    lanes: int,
    step: int,
    from_zero: bool,
) -> None:
    """`sizes`: rows, columns, and depth, a multiple of `step`, which is one of the lanes; C's rows are so many bytes
    apart. `from_zero`: C = A @ B, if there is any depth.
    """
    rows, columns, depth = sizes
    product = _RowProducts(b, a, bm, c, rows, columns, lanes, step)
    if from_zero:
        with b.if_(b.icmp("ne", depth, const("i64", 0)), "clear"):
            product.clear()
    if b_is_by_columns:
        product.by_columns(depth)
    else:
        product.by_rows(depth)


@dataclass(frozen=True)
class _RowProducts:
    b: Builder
    a: Strided
    bm: Strided
    c: tuple[Value, int]
    rows: Value
    columns: Value
    lanes: int
    step: int

    @property
    def type(self) -> str:
        return vector("float", self.lanes)

    def clear(self) -> None:
        """C = 0, of whole vectors."""
        b = self.b
        with (
            b.loop(const("i64", 0), self.rows, const("i64", 1), hint="row") as row,
            b.loop(const("i64", 0), self.columns, const("i64", self.lanes), hint="column") as column,
        ):
            b.store(zero(self.type), self._c(row.index, column.index), _BYTES)

    def by_rows(self, depth: Value) -> None:
        b, width = self.b, self.lanes * _VECTORS
        whole = b.and_(self.columns, const("i64", -width))
        with b.loop(const("i64", 0), depth, const("i64", self.step), hint="chunk") as chunk:
            with b.loop(const("i64", 0), whole, const("i64", width), hint="column") as column:
                self._rows_of(chunk.index, column.index, _VECTORS, None)
            with b.loop(whole, self.columns, const("i64", self.lanes), hint="column") as column:
                left = b.trunc(b.sub(self.columns, column.index), "i32")
                mask = b.icmp("ult", vector_const("i32", range(self.lanes)), b.splat(left, self.lanes))
                self._rows_of(chunk.index, column.index, 1, mask)

    def _rows_of(self, k: Value, column: Value, vectors: int, mask: Value | None) -> None:
        b, lanes = self.b, self.lanes
        with b.loop(const("i64", 0), self.rows, const("i64", 2), hint="row") as loop_of_rows:
            rows = self._pair(loop_of_rows.index)
            places = [self._at(self._c(row, column), v * lanes) for row in rows for v in range(vectors)]
            a_rows = [b.gep("float", self._row(self.a, row), k) for row in rows]
            sums = [self._load(place, mask) for place in places]
            with b.loop(const("i64", 0), const("i64", self.step), const("i64", 1), sums, "k") as loop:
                line = b.gep("float", self._row(self.bm, b.add(k, loop.index)), column)
                right = [self._load(self._at(line, v * lanes), mask) for v in range(vectors)]
                left = [b.splat(b.load("float", b.gep("float", row, loop.index), _BYTES), lanes) for row in a_rows]
                loop.next(*self._multiply_add(left, right, loop.carried))
            for place, total in zip(places, loop.results, strict=True):
                self._store(total, place, mask)

    def by_columns(self, depth: Value) -> None:
        b = self.b
        whole = b.and_(self.columns, const("i64", -_COLUMNS))
        for first, last, count in ((const("i64", 0), whole, _COLUMNS), (whole, self.columns, 1)):
            with (
                b.loop(first, last, const("i64", count), hint="column") as column,
                b.loop(const("i64", 0), self.rows, const("i64", 2), hint="row") as row,
            ):
                self._columns_of(self._pair(row.index), column.index, count, depth)

    def _columns_of(self, rows: list[Value], column: Value, count: int, depth: Value) -> None:
        b = self.b
        columns = [b.add(column, const("i64", number)) for number in range(count)]
        a_rows, lines = [self._row(self.a, row) for row in rows], [self._row(self.bm, own) for own in columns]
        none = [zero(self.type)] * (len(rows) * count)
        with b.loop(const("i64", 0), depth, const("i64", self.lanes), none, "k") as loop:
            left, right = (
                [b.load(self.type, b.gep("float", line, loop.index), _BYTES) for line in own] for own in (a_rows, lines)
            )
            loop.next(*self._multiply_add(left, right, loop.carried))
        places = [self._c(row, own) for row in rows for own in columns]
        before = [b.load("float", place, _BYTES) for place in places]
        for place, start, total in zip(places, before, loop.results, strict=True):
            b.store(b.fadd(start, self._sum_of_lanes(total)), place, _BYTES)

    def _pair(self, row: Value) -> list[Value]:
        b = self.b
        return [row, b.umin(b.add(row, const("i64", 1)), b.sub(self.rows, const("i64", 1)))]

    def _sum_of_lanes(self, lanes: Value) -> Value:
        b, count = self.b, self.lanes
        while count > 1:
            count //= 2
            halves = (b.shufflevector(lanes, None, range(start, start + count)) for start in (0, count))
            lanes = b.fadd(*halves)
        return b.extractelement(lanes, 0)

    def _multiply_add(self, left: list[Value], right: list[Value], sums: list[Value]) -> list[Value]:
        """The sums of each row with each vector, row by row."""
        pairs = [(x, y) for x in left for y in right]
        return [
            self.b.intrinsic("llvm.fmuladd", self.type, x, y, total) for (x, y), total in zip(pairs, sums, strict=True)
        ]

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
        first, pitch = self.c
        return self.b.gep("float", self.b.gep("i8", first, self.b.mul(row, const("i64", pitch))), column)

    def _at(self, place: Value, number: int) -> Value:
        return self.b.gep("float", place, const("i64", number)) if number else place
