"""The pointers of a block of a tensor, the mask of what of it is inside, and what stands for the rest.

    base, offsets (i, j), strides (s, 1)        base + i * s + j + rows * s + columns
    offsets (i, j), sizes (m, n)                i + rows < m & j + columns < n      unsigned: what is before 0 is large

The offset of the block is a scalar, so that what the tile adds to it does not change in a loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.hints import DIVISIBILITY, promise
from deuteron.ir.tt.convert import FpToFpOp, RoundingMode
from deuteron.ir.tt.descriptor import ALIGNMENT
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp, UnsplatOp
from deuteron.ir.types import bit_width_of, byte_width_of, element_type_of, f32, i32, i64, shape_of, tile

Shape = Sequence[int]
_LIMIT = 2**31


def block_pointers(
    b: Builder,
    base: SSAValue,
    offsets: Sequence[SSAValue],
    strides: Sequence[SSAValue],
    shape: Shape,
    is_aligned: bool = False,
) -> SSAValue:
    """The pointers of a block, a tile of that shape, which may lack dimensions of extent 1 in front. `is_aligned`: the
    base and strides but the last are promised to be multiples of 16 bytes.
    """
    pointer, aligned = base, len(strides) - 1 if is_aligned else 0
    for axis, (offset, stride) in enumerate(zip(offsets, strides, strict=True)):
        pointer = b.value(AddPtrOp(pointer, b.value(arith.MuliOp(widened(b, offset), stride))))
        if axis < aligned:
            promise(pointer.owner, DIVISIBILITY, [ALIGNMENT])
    pointers = b.value(SplatOp(pointer, shape))
    dropped = len(strides) - len(shape)
    for axis, extent in enumerate(shape):
        if extent > 1:
            steps = _steps(b, strides[dropped + axis], extent)
            if dropped + axis < aligned:
                promise(steps.owner, DIVISIBILITY, [num_aligned(base.type)])
            pointers = b.value(AddPtrOp(pointers, _along(b, steps, axis, shape)))
    return pointers


def num_aligned(pointer: Attribute) -> int:
    """How many elements of what a pointer points to have 16 bytes."""
    return ALIGNMENT // byte_width_of(element_type_of(pointer).pointee)


def widened(b: Builder, value: SSAValue) -> SSAValue:
    """An integer in 64 bits."""
    return value if bit_width_of(value.type) == 64 else b.value(ExtSIOp(value, i64))


def _steps(b: Builder, stride: SSAValue, extent: int) -> SSAValue:
    """0, stride, 2 * stride ..., in 32 bits where they are known to fit."""
    number = constant_value(stride)
    if number is not None and abs(number) * extent < _LIMIT:
        return b.value(arith.MuliOp(_range(b, extent), b.constant(number, tile(i32, [extent]))))
    steps = b.value(ExtSIOp(_range(b, extent), tile(i64, [extent])))
    return b.value(arith.MuliOp(steps, b.value(SplatOp(stride, [extent]))))


def at_least_0(b: Builder, size: SSAValue) -> SSAValue:
    """A size, of which a negative one is that of nothing."""
    number = constant_value(size)
    if number is not None:
        return size if number >= 0 else b.constant(0, size.type)
    return b.value(arith.MaxSIOp(size, b.constant(0, size.type)))


def block_mask(b: Builder, offsets: Sequence[SSAValue], sizes: Mapping[int, SSAValue], shape: Shape) -> SSAValue | None:
    """Which elements of a block are inside of the sizes, by axis, which are not negative; None: all.

    A dimension in which all are inside, as constants say, is not compared. The tile, of that shape, may lack dimensions
    of extent 1 in front.
    """
    mask, dropped = None, len(offsets) - len(shape)
    for axis, size in sizes.items():
        extent = shape[axis - dropped] if axis >= dropped else 1
        if _is_inside(offsets[axis], size, extent):
            continue
        inside = _inside(b, offsets[axis], size, extent)
        if axis >= dropped:
            inside = _along(b, inside, axis - dropped, shape)
        else:
            inside = b.value(SplatOp(b.value(UnsplatOp(inside)), shape))
        mask = inside if mask is None else b.value(arith.AndIOp(mask, inside))
    return mask


def row_pointers(
    b: Builder, base: SSAValue, rows: SSAValue, column: SSAValue, strides: Sequence[SSAValue], extent: int
) -> SSAValue:
    """The pointers of parts of rows of a matrix, which begin at one column."""
    shape = (shape_of(rows.type)[0], extent)
    pointer = b.value(AddPtrOp(base, b.value(arith.MuliOp(widened(b, column), strides[1]))))
    wide = b.value(ExtSIOp(rows, tile(i64, shape[:1])))
    offsets = b.value(arith.MuliOp(wide, b.value(SplatOp(strides[0], shape[:1]))))
    pointers = b.value(AddPtrOp(b.value(SplatOp(pointer, shape)), _along(b, offsets, 0, shape)))
    return b.value(AddPtrOp(pointers, _along(b, _steps(b, strides[1], extent), 1, shape)))


def row_mask(b: Builder, rows: SSAValue, column: SSAValue, sizes: Sequence[SSAValue], extent: int) -> SSAValue:
    """Which elements of parts of rows are inside of a matrix."""
    shape = (shape_of(rows.type)[0], extent)
    among = b.value(CmpIOp(rows, b.value(SplatOp(sizes[0], shape[:1])), "ult"))
    within = _inside(b, column, sizes[1], extent)
    return b.value(arith.AndIOp(_along(b, among, 0, shape), _along(b, within, 1, shape)))


def _is_inside(offset: SSAValue, size: SSAValue, extent: int) -> bool:
    first, end = constant_value(offset), constant_value(size)
    return first is not None and end is not None and 0 <= first <= end - extent


def _inside(b: Builder, offset: SSAValue, size: SSAValue, extent: int) -> SSAValue:
    """offset + 0, 1, 2 ... < size, in the width of the size. One comparison: without a sign, what is negative, or does
    not fit, is large.
    """
    steps = _range(b, extent)
    if bit_width_of(size.type) == 64:
        offset, steps = widened(b, offset), b.value(ExtSIOp(steps, tile(i64, [extent])))
    places = b.value(arith.AddiOp(b.value(SplatOp(offset, [extent])), steps))
    return b.value(CmpIOp(places, b.value(SplatOp(size, [extent])), "ult"))


def _range(b: Builder, extent: int) -> SSAValue:
    """0, 1, 2 ..."""
    return b.value(MakeRangeOp(0, extent))


def _along(b: Builder, values: SSAValue, axis: int, shape: Shape) -> SSAValue:
    """Values along an axis, repeated along the others."""
    for other in range(len(shape)):
        if other != axis:
            values = b.value(ExpandDimsOp(values, other))
    return values if len(shape) == 1 else b.value(BroadcastOp(values, shape))


def padding_of(b: Builder, type: Attribute, is_nan: bool) -> SSAValue:
    """A tile of what is loaded from out of bounds."""
    if not is_nan:
        return b.constant(0, type)
    element = element_type_of(type)
    number = b.constant(float("nan"), f32 if bit_width_of(element) == 8 else element)
    if bit_width_of(element) == 8:
        number = b.value(FpToFpOp(number, element, RoundingMode.RTNE))
    return b.value(SplatOp(number, shape_of(type)))
