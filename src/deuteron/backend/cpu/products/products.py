"""What a matrix product computes with: plain multiply-adds, or the processor's own products of narrow elements.

    plain_product("float")                              total + a * b, in as many lanes as a register has
    native_product(dot, cpu_target("znver5", ""))       BF16_PAIRS, for a dot of bf16 into fp32

             operands   lane of A, of B                        a step adds to each lane
    float    float      a float                                a * b
    bf16     i16        two neighbours along k                 a0 * b0 + a1 * b1         AVX512_BF16, AMX
    int8     i8         four neighbours along k                a0 * b0 + ... + a3 * b3   AVX512_VNNI, AMX

Along k, neighbours are next to each other in a row of A already; B is packed (`packing.py`). Products of bf16 take
subnormal numbers for zero, and give none. Those of bytes by AVX512_VNNI take A without a sign: 128 is added to its
elements, and what that adds to a sum, 128 times the sum of a column of B, is taken off before. Tiles (AMX, `amx.py`)
are 16 rows of 16 lanes, of which along k only the last may have fewer, of all steps of a loop together. Processors that
are made with those of bf16 have pairs of bf16 that are slower than multiply-adds of fp32, so that these are not used,
even where Linux refuses the tiles: 66 and 105 GFLOP/s on an Emerald Rapids (of whole matrices, in one run), 82 and 138
on one whose tiles are hidden.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from xdsl.dialects.builtin import i8

from deuteron.backend.llvm.builder import Builder
from deuteron.backend.llvm.compile import has_intrinsic
from deuteron.backend.llvm.intrinsics import DPBF16, LDTILECFG, TDPBF16PS, TDPBSSD, VPDPBUSD
from deuteron.backend.llvm.types import Value, const, is_float
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.types import bf16, element_type_of, f32, i32, shape_of
from deuteron.machine.cpu import CPU

LANES = 16  # of the registers that native products are computed in, and rows of tiles


@dataclass(frozen=True)
class Product:
    """`total`: the LLVM type of an element of C; `lane`: of a lane of A or B.

    `excess`: what each element of A has too much, since it has to be without a sign.
    """

    total: str
    lane: str
    excess: int = 0


class VectorProduct(Product, ABC):
    """Computed on vectors: lanes of B, one lane of A in all of them, and sums of C."""

    @abstractmethod
    def multiply_add(self, b: Builder, left: Value, right: Value, total: Value) -> Value:
        """The sums after one more step: vectors of lanes of A and B, and of C."""

    def add_excess(self, b: Builder, right: Value, total: Value) -> Value:
        """`total`, and what the excess of A adds for these lanes of B, of four bytes each."""
        return self.multiply_add(b, const(right.type, self.excess * 0x01010101), right, total)


class PlainProduct(VectorProduct):
    """Elements one at a time; integers wrap."""

    def multiply_add(self, b: Builder, left: Value, right: Value, total: Value) -> Value:
        if is_float(total.type):
            return b.intrinsic("llvm.fmuladd", total.type, left, right, total)
        return b.add(b.mul(left, right), total)


@dataclass(frozen=True)
class NativeProduct(Product):
    """`element`: the LLVM type of an element of A or B in scratch memory; `group`: how many are in a lane.

    Of rows, columns and lanes along k there is a multiple of `rows`, LANES and `depth`.
    """

    name: str = ""
    intrinsic: str = ""
    element: str = ""
    group: int = 1
    rows: int = 1
    depth: int = 1

    def fits(self, m: int, n: int, k: int, is_sum_of_loop: bool) -> bool:
        return m % self.rows == n % LANES == k % (self.depth * self.group) == 0


class _BF16Pairs(NativeProduct, VectorProduct):
    def multiply_add(self, b: Builder, left: Value, right: Value, total: Value) -> Value:
        pairs = [b.bitcast(lanes, "<32 x bfloat>") for lanes in (left, right)]
        return b.call("<16 x float>", self.intrinsic, total, *pairs)


class _ByteQuads(NativeProduct, VectorProduct):
    def multiply_add(self, b: Builder, left: Value, right: Value, total: Value) -> Value:
        quads = [b.bitcast(lanes, "<64 x i8>") for lanes in (left, right)]
        return b.call("<16 x i32>", self.intrinsic, total, *quads)


class TileProduct(NativeProduct):
    """Computed on tiles, by AMX. Where those of several steps of a loop are computed together, a step may have less."""

    def fits(self, m: int, n: int, k: int, is_sum_of_loop: bool) -> bool:
        is_part = is_sum_of_loop and k % self.group == (self.depth * self.group) % k == 0
        return super().fits(m, n, self.depth * self.group if is_part else k, is_sum_of_loop)


BF16_PAIRS = _BF16Pairs("float", "i32", name="bf16 pairs", intrinsic=DPBF16, element="i16", group=2)
BYTE_QUADS = _ByteQuads("i32", "i32", excess=128, name="byte quads", intrinsic=VPDPBUSD, element="i8", group=4)
BF16_TILES = TileProduct("float", "i32", 0, "bf16 tiles", TDPBF16PS, "i16", 2, LANES, LANES)
BYTE_TILES = TileProduct("i32", "i32", 0, "byte tiles", TDPBSSD, "i8", 4, LANES, LANES)
NATIVE_PRODUCTS = {product.name: product for product in (BF16_TILES, BYTE_TILES, BF16_PAIRS, BYTE_QUADS)}


def plain_product(type: str) -> PlainProduct:
    """The product of elements of this LLVM type, the same for A, B and C."""
    return PlainProduct(type, type)


def has_product(product: NativeProduct, target: CPU) -> bool:
    if isinstance(product, TileProduct) and not has_intrinsic(LDTILECFG, target.cpu, target.features):
        return False
    return target.vector_bits == 512 and has_intrinsic(product.intrinsic, target.cpu, target.features)


def native_product(op: DotOp, target: CPU, is_sum_of_loop: bool) -> NativeProduct | None:
    """The best that the processor has for a product of these types and sizes, if anything."""
    types = tuple(element_type_of(value.type) for value in (op.a, op.b, op.c))
    sizes = (*shape_of(op.result.type)[-2:], shape_of(op.a.type)[-1])
    known = [product for product in _OF_TYPES.get(types, ()) if has_product(product, target)]
    if BF16_PAIRS in known and _is_made_with_tiles(target):
        known.remove(BF16_PAIRS)
    return next((product for product in known if product.fits(*sizes, is_sum_of_loop)), None)


def _is_made_with_tiles(target: CPU) -> bool:
    """Whether the processor of this name has tiles of bf16, also where a process may not use them."""
    return has_intrinsic(BF16_TILES.intrinsic, target.cpu, "")


_OF_TYPES = {(bf16, bf16, f32): (BF16_TILES, BF16_PAIRS), (i8, i8, i32): (BYTE_TILES, BYTE_QUADS)}
