"""Makes loads of tiles of strided arrays, which dots read, loads through tensor descriptors: TMA copies them.

    %p = a + rows[:, None] * stride + ks + 64 * k           %d = "tt.make_tensor_descriptor"(%a, M, K, stride, 1)
    %x = "tt.load"(%p, rows < M & ks < K - 64 * k, 0)  ->   %x = "tt.descriptor_load"(%d, 128 * pid, 64 * k)

A mask gives sizes; where there is none, nothing is out of bounds. A tile that wraps around (`rows % M`) ends at M
instead, where what the dot makes of the rows after it is stored nowhere.

What has to hold, else the load stays: strides and sizes come from arguments alone; base, strides and what moves the
box along its rows are aligned to 16 bytes; strides are products of arguments, offsets are not negative; the kernel
does not write to that argument. A launch that cannot have such a descriptor, since a stride is negative, takes a kernel
of plain loads (`PLAIN_LOADS`).
Rows of less than 64 bytes are described only where all that the dots of the loop read are so narrow.
Offsets count as not negative where nothing is subtracted and every part is a program id, an argument with that hint, an
induction variable that starts so, or a quotient, remainder, minimum or sum of such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from math import gcd, prod

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, TensorType, UnitAttr
from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint

from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.addresses.strided_tile import ONE, Dimension, StridedTile, is_uniform, masked, strided_tile
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials, Wrap, changes_in, sources_of
from deuteron.analysis.aliasing.program_order import Writers
from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.analysis.axis.natural import is_natural
from deuteron.analysis.guarded_results import is_guarded
from deuteron.ir.arith import CmpIOp, SelectOp
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.descriptor import (
    INFERRED,
    MAX_RANK,
    PLAIN_LOADS,
    DescriptorLoadOp,
    MakeTensorDescriptorOp,
    TensorDescType,
)
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import TransOp
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, i32, i64, shape_of
from deuteron.machine.gpu import GPUConfig, TensorMemoryCopies
from deuteron.passes.gpu.dot_instructions import must_be_k_major, uses_wgmma
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.polynomial_values import emit
from deuteron.passes.rewrite import replace

UNBOUNDED = Polynomial.constant(2**31 - 1)
# Rows of a box of fewer bytes beside wider ones: copied by threads, those of 32 bytes have 1.33 to 1.55 of the speed in
# products of int8, 0.95 to 1.17 in LoRA, 0.93 and 0.98 in complex products; where all are so narrow, 0.76 to 1.0.
WIDE_BYTES = 64


@dataclass(frozen=True)
class InferDescriptors(Optimisation):
    """Makes descriptors for what dots by wgmma load in loops."""

    name = "infer-descriptors"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        tma = self.config.machine.tma
        if tma is None:
            return
        for func in (func for func in functions_in(op) if PLAIN_LOADS not in func.attributes):
            loads = [load for load in nested_ops(func, LoadOp) if self._is_operand(load)]
            if loads:
                _Rewrite(func, tma).rewrite(loads)

    def _is_operand(self, load: LoadOp) -> bool:
        """Whether dots by wgmma in a loop read a load, and nothing else does."""
        if len(shape_of(load.result.type)) != 2 or not isinstance(load.parent_op(), scf.ForOp):
            return False
        uses = list(_uses_after_transpositions(load.result))
        return bool(uses) and all(
            isinstance(use.operation, DotOp) and use.index < 2 and uses_wgmma(use.operation, self.config)
            for use in uses
        )


def _uses_after_transpositions(value: SSAValue) -> Iterator[Use]:
    for use in value.uses:
        if isinstance(use.operation, TransOp):
            yield from _uses_after_transpositions(use.operation.result)
        else:
            yield use


class _Rewrite:
    """What the loads of one function are known to be; equal descriptors are made once."""

    def __init__(self, func: FuncOp, tma: TensorMemoryCopies):
        self._tma = tma
        self._hinted = {arg for index, arg in enumerate(func.args) if func.arg_divisibility(index) % tma.alignment == 0}
        self._info, self._known = AxisInfoAnalysis(func, deferred=True), TilePolynomials(self._hinted)
        self._writers = Writers(func)
        self._entry = Builder(InsertPoint.at_start(func.body.block), func.location)
        self._descriptors: dict[tuple, SSAValue] = {}

    def rewrite(self, loads: Sequence[LoadOp]) -> None:
        tiles = {load: tile for load in loads if (tile := self._tile(load)) and self._can_be_described(load, tile)}
        narrow = {load for load, tile in tiles.items() if _row_bytes(load, tile) < WIDE_BYTES}
        mixed = {load.parent for load in loads if load not in narrow}
        for load, tile in tiles.items():
            if load not in narrow or load.parent not in mixed:
                self._rewrite(load, tile)

    def _tile(self, load: LoadOp) -> StridedTile | None:
        """The array that is loaded from, with its sizes."""
        pointer = self._known.of(load.ptr)
        tile = strided_tile(pointer, len(shape_of(load.result.type))) if pointer is not None else None
        if tile is not None and load.mask is not None:
            tile = masked(tile, self._known, load.mask) if load.gives_zeros else None
        for wrap in [wrap for operand in load.operands for wrap in self._known.wraps_in(operand)]:
            tile = self._unwrapped(load, tile, wrap) if tile is not None else None
        return tile

    def _unwrapped(self, load: LoadOp, tile: StridedTile, wrap: Wrap) -> StridedTile | None:
        """The tile that ends where another wraps around."""
        around = [one for one in tile.dimensions if one.axis is not None and one.coordinate(0) == wrap.dividend]
        if len(around) != 1 or not is_uniform(wrap.divisor):
            return None
        (dimension,) = around
        if not is_guarded(self._known, load.result, dimension.axis, wrap.divisor - dimension.offset):
            return None
        bounded = dimension.bounded(wrap.divisor)
        return tile.with_dimension(dimension, bounded) if bounded is not None else None

    def _can_be_described(self, load: LoadOp, tile: StridedTile) -> bool:
        size, rows = byte_width_of(load.result.type), [one for one in tile.dimensions if one.stride == ONE]
        if len(rows) != 1 or rows[0].axis is None or len(tile.dimensions) > MAX_RANK:
            return False
        strides = [one.stride for one in tile.dimensions if one.stride != ONE]
        aligned = [tile.base, *(stride * Polynomial.constant(size) for stride in [*strides, rows[0].offset])]
        return (
            max(shape_of(load.result.type)) <= self._tma.max_extent
            and _row_bytes(load, tile) >= self._tma.alignment
            and _is_read_along(load.result, rows[0].axis)
            and all(self._divisibility(one) % self._tma.alignment == 0 for one in aligned)
            and all(map(self._is_forward, strides))
            and all(_may_count(one, self._hinted) for one in tile.dimensions)
            and (not _is_wide(load.ptr) or all(_is_near(one, size, self._tma.max_extent) for one in tile.dimensions))
            and self._writers.are_apart(load)
        )

    def _is_forward(self, stride: Polynomial) -> bool:
        """Whether a stride is not negative where the arguments in it are not: a launch looks at what it is."""
        return all(factor > 0 for _, factor in stride)

    def _divisibility(self, one: SSAValue | Polynomial) -> int:
        """What divides an address in bytes, or a polynomial."""
        if isinstance(one, SSAValue):
            return self._info.of(one).divisibility[0]
        return gcd(*(factor * prod(self._divisibility(atom.value) for atom in atoms) for atoms, factor in one))

    def _rewrite(self, load: LoadOp, tile: StridedTile) -> None:
        """Dimensions of the array that the box does not walk come first; the one of stride 1 last."""
        shape, b = shape_of(load.result.type), Builder.before(load)
        dimensions = sorted(tile.dimensions, key=lambda one: (one.axis is not None, one.stride == ONE))
        extents = [1 if one.axis is None else shape[one.axis] for one in dimensions]
        type = TensorDescType(TensorType(element_type_of(load.result.type), extents))
        descriptor = self._descriptor(tile.base, dimensions, type)
        offsets = [_offset(load, one, extent) for one, extent in zip(dimensions, extents, strict=True)]
        axes = [one.axis for one in dimensions if one.axis is not None]
        loaded = b.value(DescriptorLoadOp(descriptor, offsets, [shape[axis] for axis in axes]))
        replace(load, [loaded if axes == sorted(axes) else b.value(TransOp(loaded, axes))])

    def _descriptor(self, base: SSAValue, dimensions: Sequence[Dimension], type: TensorDescType) -> SSAValue:
        sizes = [one.size or UNBOUNDED for one in dimensions]
        key = base, type, *sizes, *(one.stride for one in dimensions)
        if key not in self._descriptors:
            shape = [self._at_least_one(size) for size in sizes]
            strides = [emit(self._entry, one.stride, i64) for one in dimensions]
            made = self._entry.insert(MakeTensorDescriptorOp(base, shape, strides, type))
            made.attributes[INFERRED], made.result.name_hint = UnitAttr(), base.name_hint
            self._descriptors[key] = made.result
        return self._descriptors[key]

    def _at_least_one(self, size: Polynomial) -> SSAValue:
        """The map of nothing is that of one element, of which nothing is loaded (see _offset)."""
        one = self._entry.constant(1, i32)
        if size.number is not None:
            return one if size.number < 1 else emit(self._entry, size, i32)
        return self._entry.value(arith.MaxSIOp(emit(self._entry, size, i32), one))


def _row_bytes(load: LoadOp, tile: StridedTile) -> int:
    """Of a box, whose elements are neighbours along one axis."""
    (axis,) = (one.axis for one in tile.dimensions if one.stride == ONE)
    return shape_of(load.result.type)[axis] * byte_width_of(load.result.type)


def _offset(load: LoadOp, dimension: Dimension, extent: int) -> SSAValue:
    """Where a box begins, computed before the loops that do not change it. Of nothing, where a size is not
    positive, a box in front of it is loaded: all of it is out of bounds.
    """
    place: Operation = load
    while isinstance(loop := place.parent_op(), scf.ForOp) and not changes_in(dimension.offset, loop):
        place = loop
    b = Builder.before(place)
    offset = emit(b, dimension.offset, i32)
    if dimension.size is None:
        return offset
    some = b.value(CmpIOp(emit(b, dimension.size, i32), b.constant(0, i32), "sgt"))
    return b.value(SelectOp(some, offset, b.constant(-extent, i32)))


def _is_read_along(value: SSAValue, axis: int) -> bool:
    """Whether dots can read a tile from shared memory whose elements are neighbours along an axis."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, TransOp):
            if not _is_read_along(op.result, op.result_axis(axis)):
                return False
        elif must_be_k_major(value.type) and axis != (1, 0)[use.index]:
            return False
    return True


def _may_count(dimension: Dimension, naturals: Set[SSAValue]) -> bool:
    """Whether offset and size fit a descriptor: 32 bits, and not negative except where a mask says so."""
    atoms = dimension.offset.atoms | (dimension.size.atoms if dimension.size is not None else set())
    if any(bit_width_of(atom.value.type) > 32 for atom in atoms) or not _fits(dimension.size or UNBOUNDED):
        return False
    return dimension.starts_at_zero or is_natural(dimension.offset, naturals, trusts=True)


def _fits(size: Polynomial) -> bool:
    """Whether a size that a mask says fits 32 bits, as the mask's own numbers do: `rows - 64 < n` holds also where
    n + 64 does not fit, as where n is the largest number because there is no end.
    """
    if size.number is not None:
        return abs(size.number) <= UNBOUNDED.number
    return [factor for _, factor in size] == [1]


def _is_wide(pointer: SSAValue) -> bool:
    """Whether numbers that fit 32 bits were widened for it, so that offsets may not."""
    made = (value for value in sources_of(pointer) if isinstance(value.owner, ExtSIOp))
    return any(bit_width_of(element_type_of(value.type)) > 32 for value in made)


def _is_near(dimension: Dimension, size: int, max_step: int) -> bool:
    """Whether an offset fits 32 bits, however large the array is: in memory of 256 GB those of long strides do."""
    stride = dimension.stride.number
    return stride is None or stride * size >= 128 or all(factor <= max_step for _, factor in dimension.offset)
