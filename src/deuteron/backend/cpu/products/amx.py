"""The matrix product on tiles, registers of 16 rows of 64 bytes: AMX (Intel SDM vol. 1, chapter 18).

    emit_tile_matmul(b, MatmulShape(64, 64, 32, lda, 32, ldc, panel), Operands(a, bm, c), BF16_TILES)

    for j in 0, 32 .. n:                        columns of C: two tiles
        for i in 0, 32 .. m:                    rows of C: two tiles
            tiles 0 to 3 = C[i:i+32, j:j+32]
            for k in 0, 16 .. depth:            lanes of A and B
                tiles 4, 5 = A[i:i+32, k:k+16];   tiles 6, 7 = B[k:k+16, j:j+32]
                tiles 0 to 3 += products of each of A's with each of B's
            C[i:i+32, j:j+32] = tiles 0 to 3

Intrinsics name tiles by their numbers, so that LLVM assigns none. All tiles are whole: they are configured once
(`emit_configuration`), at the beginning of a kernel, and released at its end. Only what is left of a depth that 16 does
not divide, as of an odd number of steps of 8 lanes, has tiles of A with fewer lanes, and of B with fewer rows, which
are configured for it (75 ns on an Emerald Rapids).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from deuteron.backend.cpu.products.blocking import (
    NOTHING,
    TILE,
    Given,
    MatmulShape,
    Operands,
    needed_blocks,
    tile_columns,
)
from deuteron.backend.cpu.products.products import TileProduct
from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.intrinsics import LDTILECFG, TILELOAD, TILERELEASE, TILESTORE, TILEZERO
from deuteron.backend.llvm.types import Value, array_const, const

_ROWS = 2 * TILE  # of a block of C
_LANE_BYTES = 4
_C, _A, _B = 0, 4, 6  # the first tile of each operand
_NUM_TILES = 8


def emit_configuration(b: Builder) -> None:
    """Make all tiles whole, and zero."""
    b.call("void", LDTILECFG, b.module.constant(array_const("i8", _configuration(TILE))))


def _configuration(lanes: int) -> bytes:
    """Of tiles of A with so many lanes: the palette; then, from byte 16 on, the bytes of a row of each tile, 16 bits
    each; from byte 48 on its rows.
    """
    row_bytes = [TILE * _LANE_BYTES] * _A + [lanes * _LANE_BYTES] * (_B - _A) + [TILE * _LANE_BYTES] * (_NUM_TILES - _B)
    rows = [TILE] * _B + [lanes] * (_NUM_TILES - _B)
    return bytes([1, *[0] * 15, *(byte for count in row_bytes for byte in (count, 0)), *[0] * 16, *rows, *[0] * 8])


def emit_release(b: Builder) -> None:
    b.call("void", TILERELEASE)


def emit_tile_matmul(
    b: Builder,
    shape: MatmulShape,
    operands: Operands,
    product: TileProduct,
    given: Given = NOTHING,
) -> None:
    """C += A @ B; elements of operands are lanes here, in the shape too. Its m and n are multiples of 16;
    its k is one, or divides 16.
    """
    depth = given.depth or const("i64", shape.k)
    if shape.k % TILE == 0:
        _emit_blocks(_Kernel(b, shape, operands, product, given, depth, given.from_zero))
        return
    whole, rest = b.and_(depth, const("i64", -TILE)), b.and_(depth, const("i64", TILE - 1))
    kernel = _Kernel(b, shape, operands, product, given, whole, given.from_zero)
    _emit_blocks(kernel)
    with b.if_(b.icmp("ne", rest, const("i64", 0)), "rest"):
        _emit_narrow_configuration(b, rest, shape.k)
        _emit_blocks(kernel.beyond(whole, rest))
        emit_configuration(b)


def _emit_narrow_configuration(b: Builder, lanes: Value, unit: int) -> None:
    """For so many lanes, fewer than a whole tile has, of which there is a multiple of the unit."""
    known = b"".join(_configuration(number) for number in range(unit, TILE, unit))
    number = b.sub(b.udiv(lanes, const("i64", unit)), const("i64", 1))
    table = b.module.constant(array_const("i8", known))
    b.call("void", LDTILECFG, b.gep("i8", table, b.mul(number, const("i64", len(known) // (TILE // unit - 1)))))


def _emit_blocks(kernel: _Kernel) -> None:
    b, n = kernel.b, kernel.shape.n
    for first, last, columns in needed_blocks(b, n, tile_columns(n), TILE, kernel.given.needed_columns):
        with b.loop(first, last, const("i64", columns), hint="column") as column:
            kernel.emit_columns(column.index, columns)


@dataclass(frozen=True)
class _Kernel:
    b: Builder
    shape: MatmulShape
    operands: Operands
    product: TileProduct
    given: Given
    depth: Value
    from_zero: bool | Value

    @property
    def row_bytes(self) -> Value:
        """Of A."""
        return self.given.row_bytes or const("i64", self.shape.lda * _LANE_BYTES)

    def emit_columns(self, column: Value, columns: int) -> None:
        """All blocks of so many columns of C, from this one on."""
        for top, bottom, rows in needed_blocks(self.b, self.shape.m, _ROWS, TILE, self.given.needed_rows):
            with self.b.loop(top, bottom, const("i64", rows), hint="row") as row:
                self.emit_block(row.index, column, rows // TILE, columns // TILE)

    def beyond(self, first: Value, depth: Value) -> _Kernel:
        """Adds the products of so many lanes more, from this one on."""
        a, bm, c = self.operands
        a = self._lane(a, first)
        bm = self._lane(bm, self.b.mul(first, const("i64", self.shape.ldb)))
        return replace(self, operands=Operands(a, bm, c), depth=depth, from_zero=False)

    def emit_block(self, row: Value, column: Value, rows: int, columns: int) -> None:
        """One block of C, of so many tiles, over all of k."""
        b, shape = self.b, self.shape
        c = self._lane(self.operands.c, b.add(b.mul(row, const("i64", shape.ldc)), column))
        a = b.gep("i8", self.operands.a, b.mul(row, self.row_bytes))
        strip = self._lane(self.operands.b, b.mul(column, const("i64", shape.strip(tile_columns(shape.n)))))
        self._begin_sums(c, rows, columns)
        with b.loop(const("i64", 0), self.depth, const("i64", TILE), hint="k") as loop:
            left, right = self._lane(a, loop.index), self._lane(strip, b.mul(loop.index, const("i64", shape.ldb)))
            self._multiply(left, right, rows, columns)
        self._move_sums(TILESTORE, c, rows, columns)

    def _multiply(self, left: Value, right: Value, rows: int, columns: int) -> None:
        """Tiles of A and B are loaded between products, which take four times as long as a load."""
        for column in range(columns):
            for row in range(rows):
                if column == 0:
                    self._load_left(row, left)
                if row == 0:
                    self._move(TILELOAD, _B + column, right, column * TILE, self.shape.ldb)
                numbers = _C + 2 * row + column, _A + row, _B + column
                self.b.call("void", self.product.intrinsic, *[const("i8", number) for number in numbers])

    def _load_left(self, row: int, left: Value) -> None:
        b = self.b
        address = b.gep("i8", left, b.mul(self.row_bytes, const("i64", row * TILE))) if row else left
        b.call("void", TILELOAD, const("i8", _A + row), address, self.row_bytes)

    def _begin_sums(self, c: Value, rows: int, columns: int) -> None:
        """With 0, or with what is in memory."""
        if isinstance(self.from_zero, Value):
            with self.b.if_(self.from_zero, "first") as branch:
                self._clear_sums(rows, columns)
                branch.otherwise()
                self._move_sums(TILELOAD, c, rows, columns)
        elif self.from_zero:
            self._clear_sums(rows, columns)
        else:
            self._move_sums(TILELOAD, c, rows, columns)

    def _clear_sums(self, rows: int, columns: int) -> None:
        for row in range(rows):
            for column in range(columns):
                self.b.call("void", TILEZERO, const("i8", _C + 2 * row + column))

    def _move_sums(self, intrinsic: str, c: Value, rows: int, columns: int) -> None:
        for row in range(rows):
            for column in range(columns):
                first = row * TILE * self.shape.ldc + column * TILE
                self._move(intrinsic, _C + 2 * row + column, c, first, self.shape.ldc)

    def _move(self, intrinsic: str, tile: int, matrix: Value, first: int, stride: int) -> None:
        """A tile from or to memory: the lane that it begins with, and the distance between its rows, in lanes."""
        address = self._lane(matrix, const("i64", first)) if first else matrix
        self.b.call("void", intrinsic, const("i8", tile), address, const("i64", stride * _LANE_BYTES))

    def _lane(self, matrix: Value, number: Value) -> Value:
        return self.b.gep("i32", matrix, number)
