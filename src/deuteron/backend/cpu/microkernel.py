"""The matrix product C += A @ B of row-major buffers, as loops around a block of C that stays in registers.

    emit_matmul(b, MatmulShape(m, n, k, lda, ldb, ldc), a, bm, c, "float", vector_width=16, registers=32)

    for j in 0, 32 .. n:                        columns of C: two vectors
        for i in 0, 8 .. m:                     rows of C
            acc[8][2] = C[i:i+8, j:j+32]
            for k: acc[r][v] += splat(A[i+r, k]) * B[k, j+16v : j+16v+16]
            C[i:i+8, j:j+32] = acc

The code has one block for each of the two loops' full and last steps: its size does not grow with the tile's. One panel
of B, k by 2 vectors, stays in the L1 cache while all rows pass it. Integers wrap. Rate of one thread in GFLOP/s on a
Sapphire Rapids, with AVX-512, AVX2 and in NumPy: 64 x 64 x 64: 162, 94, 131; 128 x 128 x 64: 170, 99, 114;
32 x 128 x 32: 143, 94, 106; 64 x 64 x 64 in double: 83, -, 73.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.types import Value, byte_width, const, is_float, like, vector, width


@dataclass(frozen=True)
class MatmulShape:
    """C[m, n] += A[m, k] @ B[k, n]; the distances between rows are in elements."""

    m: int
    n: int
    k: int
    lda: int
    ldb: int
    ldc: int


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

    Two vectors wide, where C is: for each step of k that is rows + 2 loads for 2 * rows multiply-adds.
    """
    width = min(vector_width, _power_of_two_at_most(shape.n))
    accumulators = registers // 2
    vectors = min(2, shape.n // width)
    rows = min(accumulators // vectors, shape.m)
    vectors = min(accumulators // rows, shape.n // width)
    return Blocking(rows, vectors, width, unroll=4 if shape.k % 4 == 0 else 1)


def emit_matmul(
    b: Builder,
    shape: MatmulShape,
    a: Value,
    bm: Value,
    c: Value,
    type: str,
    vector_width: int,
    registers: int,
    operand_type: str = "",
) -> None:
    """C += A @ B. C has elements of `type`: float, double or i32, of which a vector register holds `vector_width`.

    A and B have elements of `operand_type`, the same where it is not given, or a narrower one: i8 into i32 is widened
    with its sign. `registers` is how many vector registers there are.
    """
    blocking = choose_blocking(shape, vector_width, registers)
    kernel = _Kernel(b, shape, a, bm, c, type, operand_type or type, blocking)
    for first, last, columns in _steps(shape.n, blocking.columns, blocking.vector_width):
        vector_width = min(blocking.vector_width, columns)
        with b.loop(const("i64", first), const("i64", last), const("i64", columns), hint="column") as column:
            for top, bottom, rows in _steps(shape.m, blocking.rows, 1):
                with b.loop(const("i64", top), const("i64", bottom), const("i64", rows), hint="row") as row:
                    kernel.emit_block(row.index, column.index, rows, columns // vector_width, vector_width)


def _steps(size: int, step: int, unit: int) -> Iterator[tuple[int, int, int]]:
    """(start, stop, step) of one loop of full steps, then of what is left in multiples of the unit, then of less."""
    start = 0
    while start < size:
        while step > size - start:
            step = size - start if unit == 1 else (size - start) // unit * unit or _power_of_two_at_most(size - start)
        stop = start + (size - start) // step * step
        yield start, stop, step
        start = stop


def _power_of_two_at_most(number: int) -> int:
    return 1 << (number.bit_length() - 1)


@dataclass(frozen=True)
class _Kernel:
    b: Builder
    shape: MatmulShape
    a: Value
    bm: Value
    c: Value
    type: str
    operand_type: str
    blocking: Blocking

    def emit_block(self, row: Value, column: Value, rows: int, vectors: int, vector_width: int) -> None:
        """One block of C, over all of k."""
        b, shape = self.b, self.shape
        type = vector(self.type, vector_width)
        c = self._at(self.c, row, column, shape.ldc)
        places = [self._offset(c, r * shape.ldc + v * vector_width) for r in range(rows) for v in range(vectors)]
        sums = [b.load(type, place, byte_width(type)) for place in places]
        a_row = b.gep(self.operand_type, self.a, b.mul(row, const("i64", shape.lda)))
        b_column = b.gep(self.operand_type, self.bm, column)
        step = const("i64", self.blocking.unroll)
        with b.loop(const("i64", 0), const("i64", shape.k), step, carried=sums, hint="k") as loop:
            a = b.gep(self.operand_type, a_row, loop.index)
            bm = b.gep(self.operand_type, b_column, b.mul(loop.index, const("i64", shape.ldb)))
            sums = loop.carried
            for u in range(self.blocking.unroll):
                sums = self._step(sums, a, bm, u, rows, type)
            loop.next(*sums)
        for place, value in zip(places, loop.results, strict=True):
            b.store(value, place, byte_width(type))

    def _step(self, sums: list[Value], a: Value, bm: Value, k: int, rows: int, type: str) -> list[Value]:
        """The sums after the k-th of some steps: each row's element of A times the vectors of B."""
        shape, vectors = self.shape, len(sums) // rows
        right = [self._operand(type, bm, k * shape.ldb + v * width(type)) for v in range(vectors)]
        result = []
        for r in range(rows):
            left = self.b.splat(self._operand(self.type, a, r * shape.lda + k), width(type))
            result += [self._multiply_add(left, right[v], sums[r * vectors + v]) for v in range(vectors)]
        return result

    def _operand(self, type: str, ptr: Value, elements: int) -> Value:
        """An element or a vector of A or B, in the type of C."""
        address = self.b.gep(self.operand_type, ptr, const("i64", elements)) if elements else ptr
        narrow = self.b.load(like(type, self.operand_type), address)
        return self.b.fpext(narrow, type) if is_float(type) else self.b.sext(narrow, type)

    def _multiply_add(self, left: Value, right: Value, total: Value) -> Value:
        if is_float(total.type):
            return self.b.intrinsic("llvm.fmuladd", total.type, left, right, total)
        return self.b.add(self.b.mul(left, right), total)

    def _at(self, ptr: Value, row: Value, column: Value, stride: int) -> Value:
        index = self.b.add(self.b.mul(row, const("i64", stride)), column)
        return self.b.gep(self.type, ptr, index)

    def _offset(self, ptr: Value, elements: int) -> Value:
        return self.b.gep(self.type, ptr, const("i64", elements)) if elements else ptr
