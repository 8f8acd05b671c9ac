"""Integer tiles all of whose numbers are known when compiling: made of ranges and constants.

    known_elements(maxsi(subi(make_range 0 to 4, 1), 0))      (0, 0, 1, 2)
    known_elements(subi(make_range 0 to 4, %n))               None

An elementwise op is computed for each combination of operands once, by the rules of index_bits.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.index_bits import at_one_place
from deuteron.analysis.memo import evaluate
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, TransOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.types import bit_width_of, is_integer, is_tile, num_elements_of, shape_of

Elements = tuple[int, ...]
# Of a tile: 2 us for each and each op.
MAX_ELEMENTS = 1024


def known_elements(value: SSAValue) -> Elements | None:
    """The numbers of a tile, without signs, row by row; None where one is not known, or they are many."""
    return evaluate(value, known := {}, _operands, lambda one: _compute(one, [known[o] for o in _operands(one)]))


def _operands(value: SSAValue) -> Sequence[SSAValue]:
    is_made = isinstance(value.owner, Operation) and _is_short_tile(value) and constant_value(value) is None
    return value.owner.operands if is_made else ()


def _is_short_tile(value: SSAValue) -> bool:
    return is_tile(value.type) and is_integer(value.type) and num_elements_of(value.type) <= MAX_ELEMENTS


def _compute(value: SSAValue, operands: Sequence[Elements | None]) -> Elements | None:
    if not _is_short_tile(value) or not isinstance(value.owner, Operation):
        return None
    number = constant_value(value)
    if number is not None:
        return (number & (1 << bit_width_of(value.type)) - 1,) * num_elements_of(value.type)
    if None in operands:
        return None
    rule = _SHAPES.get(type(value.owner), _elementwise)
    return rule(value.owner, *operands)


def _elementwise(op: Operation, *operands: Elements) -> Elements | None:
    if not operands:
        return None
    places = list(zip(*operands, strict=True))
    results = {numbers: at_one_place(op, numbers) for numbers in dict.fromkeys(places)}
    return None if None in results.values() else tuple(results[numbers] for numbers in places)


def _make_range(op: MakeRangeOp) -> Elements:
    start, mask = op.start.value.data, (1 << bit_width_of(op.result.type)) - 1
    return tuple(start + index & mask for index in range(num_elements_of(op.result.type)))


def _same(op: Operation, source: Elements) -> Elements:
    return source


def _reshape(op: ReshapeOp, source: Elements) -> Elements | None:
    return source if op.allow_reorder is None else None


def _broadcast(op: BroadcastOp, source: Elements) -> Elements:
    shape = shape_of(op.src.type)
    strides = [0 if extent == 1 else stride for extent, stride in zip(shape, _strides(shape), strict=True)]
    return _read(source, shape_of(op.result.type), strides)


def _trans(op: TransOp, source: Elements) -> Elements:
    strides = _strides(shape_of(op.src.type))
    return _read(source, shape_of(op.result.type), [strides[axis] for axis in op.permutation])


def _strides(shape: Sequence[int]) -> list[int]:
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _read(source: Elements, shape: Sequence[int], strides: Sequence[int]) -> Elements:
    """The elements that are so far apart along each dimension."""
    offsets = ([index * stride for index in range(extent)] for extent, stride in zip(shape, strides, strict=True))
    return tuple(source[sum(place)] for place in product(*offsets))


_SHAPES: dict[type[Operation], Callable[..., Elements | None]] = {
    MakeRangeOp: _make_range,
    ExpandDimsOp: _same,
    ConvertLayoutOp: _same,
    ReshapeOp: _reshape,
    BroadcastOp: _broadcast,
    TransOp: _trans,
}
