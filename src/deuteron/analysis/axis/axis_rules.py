"""What each op makes of the axis info of its operands: one rule for each op, of which only the result is needed.

a + b     contiguous where one side is and the other is constant; divisible by what divides both
a * b     every element divisible by the product of what divides each
i // m    constant in groups that divide m, where i counts up from multiples of their size
i % m     contiguous in such groups
i < n     constant in groups that divide n
load(p)   constant where the address, the mask and what is given for it are
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation

from deuteron.analysis.axis.axis_info import (
    MAX_DIVISIBILITY,
    AxisInfo,
    in_aligned_groups,
    power_of_two_divisor,
    uniform,
    unknown,
)
from deuteron.analysis.axis.ranges import relies_on_natural
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.casts import ExtSIOp, ExtUIOp, TruncIOp
from deuteron.ir.tt.convert import BitcastOp
from deuteron.ir.tt.function import function_of
from deuteron.ir.tt.memory import AddPtrOp, LoadOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp, TransOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import bit_width_of, byte_width_of, i32, is_pointer, pointee_of, shape_of

Rule = Callable[[Operation, list[AxisInfo]], AxisInfo]
MAX_SHIFT = bit_width_of(i32) - 1  # a factor is positive in as many bits


def _constant(op: Operation, _: list[AxisInfo]) -> AxisInfo:
    number = constant_value(op.results[0])
    if isinstance(number, int):
        return uniform(op.results[0], power_of_two_divisor(number), number)
    return unknown(op.results[0]) if number is None else uniform(op.results[0], 1)


def _make_range(op: MakeRangeOp, _: list[AxisInfo]) -> AxisInfo:
    start, extent = op.start.value.data, shape_of(op.result.type)[0]
    return AxisInfo((extent,), (power_of_two_divisor(start),), (1,))


def _splat(op: SplatOp, operands: list[AxisInfo]) -> AxisInfo:
    return uniform(op.result, operands[0].divisibility[0], operands[0].constant)


def _expand_dims(op: ExpandDimsOp, operands: list[AxisInfo]) -> AxisInfo:
    source, axis = operands[0], op.axis.value.data
    everywhere = min(source.divisibility_at(a, 1) for a in range(len(source.contiguity)))

    def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:axis], value, *values[axis:])

    return source._replace(
        contiguity=insert(source.contiguity, 1),
        divisibility=insert(source.divisibility, everywhere),
        constancy=insert(source.constancy, 1),
    )


def _broadcast(op: BroadcastOp, operands: list[AxisInfo]) -> AxisInfo:
    source, shape = operands[0], shape_of(op.result.type)
    repeated = [old != new for old, new in zip(shape_of(op.src.type), shape, strict=True)]
    return source._replace(
        contiguity=tuple(1 if r else c for r, c in zip(repeated, source.contiguity, strict=True)),
        constancy=tuple(extent if r else c for r, extent, c in zip(repeated, shape, source.constancy, strict=True)),
    )


def _trans(op: TransOp, operands: list[AxisInfo]) -> AxisInfo:
    source, order = operands[0], op.permutation
    return source._replace(
        contiguity=tuple(source.contiguity[a] for a in order),
        divisibility=tuple(source.divisibility[a] for a in order),
        constancy=tuple(source.constancy[a] for a in order),
    )


def _sum(lhs: AxisInfo, rhs: AxisInfo, commutes: bool, constant: int | None) -> AxisInfo:
    axes = range(len(lhs.contiguity))
    contiguity = tuple(
        max(gcd(lhs.contiguity[a], rhs.constancy[a]), gcd(lhs.constancy[a], rhs.contiguity[a]) if commutes else 1)
        for a in axes
    )
    divisibility = tuple(
        gcd(lhs.divisibility_at(a, contiguity[a]), rhs.divisibility_at(a, contiguity[a])) for a in axes
    )
    constancy = tuple(gcd(lhs.constancy[a], rhs.constancy[a]) for a in axes)
    return AxisInfo(contiguity, divisibility, constancy, constant, max(lhs.step, rhs.step))


def _both(lhs: AxisInfo, rhs: AxisInfo, combine: Callable[[int, int], int]) -> int | None:
    return None if lhs.constant is None or rhs.constant is None else combine(lhs.constant, rhs.constant)


def _add(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    return _sum(*operands, commutes=True, constant=_both(*operands, lambda a, b: a + b))


def _sub(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    return _sum(*operands, commutes=False, constant=_both(*operands, lambda a, b: a - b))


def _addptr(op: AddPtrOp, operands: list[AxisInfo]) -> AxisInfo:
    pointer, offset = operands
    size = byte_width_of(pointee_of(op.ptr.type))
    scaled = tuple(min(divisor * size, MAX_DIVISIBILITY) for divisor in offset.divisibility)
    return _sum(pointer, offset._replace(divisibility=scaled, step=size), commutes=True, constant=None)


def _bitcast(op: BitcastOp, operands: list[AxisInfo]) -> AxisInfo:
    """An address stays one, and neighbours do where elements have the same size (bool and int8)."""
    source = operands[0]
    if not is_pointer(op.src.type):
        return _same_groups(op, operands)
    if byte_width_of(pointee_of(op.src.type)) == byte_width_of(pointee_of(op.result.type)):
        return source
    return AxisInfo((1,) * len(source.constancy), _each(source), source.constancy)


def _mul(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    lhs, rhs = operands
    if lhs.constant == 1:
        return rhs
    if rhs.constant == 1:
        return lhs
    axes = range(len(lhs.contiguity))
    divisibility = tuple(min(lhs.divisibility_at(a, 1) * rhs.divisibility_at(a, 1), MAX_DIVISIBILITY) for a in axes)
    constancy = tuple(gcd(lhs.constancy[a], rhs.constancy[a]) for a in axes)
    return AxisInfo((1,) * len(constancy), divisibility, constancy, _both(lhs, rhs, lambda a, b: a * b))


def _div(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    lhs, rhs = operands
    if rhs.constant == 1:
        return lhs
    axes = range(len(lhs.contiguity))
    constancy = tuple(max(gcd(lhs.constancy[a], rhs.constancy[a]), _period(op, lhs, rhs, a)) for a in axes)
    return AxisInfo((1,) * len(constancy), tuple(_quotient(divisor, rhs.constant) for divisor in _each(lhs)), constancy)


def _period(op: Operation, lhs: AxisInfo, rhs: AxisInfo, axis: int) -> int:
    """How many neighbours have one quotient, and remainders that count up: of one divisor, of which they are a divisor.
    0 is such a divisor: x // 0 is 0, x % 0 is x.
    """
    period = gcd(rhs.divisibility[axis], rhs.constancy[axis])
    return gcd(_group(op, lhs, axis), period) if period > 1 else 1


def _group(op: Operation, dividend: AxisInfo, axis: int) -> int:
    """How many neighbours count up from a multiple of their number. What is rounded towards zero, as of signed numbers,
    goes in such groups only where none is negative.
    """
    group = gcd(dividend.contiguity[axis], dividend.divisibility[axis])
    is_rounded_down = group == 1 or not isinstance(op, arith.DivSIOp | arith.RemSIOp)
    return group if is_rounded_down or relies_on_natural(op.lhs, function_of(op)) else 1


def _quotient(divisor: int, number: int | None) -> int:
    """What divides the quotients of multiples of a power of two."""
    is_power = number is not None and number > 0 and not number & number - 1
    return max(divisor // number, 1) if is_power else 1


def _shift_by(rule: Rule) -> Rule:
    """A shift to the left is a product, one to the right a quotient that is rounded down."""

    def shift(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
        x, count = operands
        if count.constant is None or not 0 <= count.constant < MAX_SHIFT:
            return _same_groups(op, operands)
        factor = 1 << count.constant
        return rule(op, [x, count._replace(divisibility=(factor,) * len(count.divisibility), constant=factor)])

    return shift


def _rem(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    lhs, rhs = operands
    axes = range(len(lhs.contiguity))
    contiguity = tuple(_period(op, lhs, rhs, a) for a in axes)
    divisibility = tuple(
        gcd(lhs.divisibility_at(a, contiguity[a]), rhs.divisibility_at(a, contiguity[a])) for a in axes
    )
    return AxisInfo(contiguity, divisibility, tuple(gcd(lhs.constancy[a], rhs.constancy[a]) for a in axes))


def _cmpi(op: CmpIOp, operands: list[AxisInfo]) -> AxisInfo:
    """`k <= i` and `i < k` do not change within a group whose first value and whose k are multiples of its size."""
    lhs, rhs = operands
    counting, bound = (lhs, rhs) if op.predicate_name in ("slt", "sge", "ult", "uge") else (rhs, lhs)
    steps = op.predicate_name not in ("eq", "ne")
    constancy = []
    for a in range(len(lhs.contiguity)):
        equal = gcd(lhs.constancy[a], rhs.constancy[a])
        group = gcd(
            gcd(counting.contiguity[a], counting.divisibility[a]), gcd(bound.divisibility[a], bound.constancy[a])
        )
        constancy.append(max(equal, group) if steps else equal)
    ones = (1,) * len(constancy)
    return AxisInfo(ones, ones, tuple(constancy))


def _same_groups(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    """An elementwise op of which only this is known: equal operands give equal results."""
    tiles = [info.constancy for operand, info in zip(op.operands, operands, strict=True) if shape_of(operand.type)]
    ones = (1,) * len(operands[0].constancy)
    return AxisInfo(ones, ones, tuple(gcd(*groups) for groups in zip(*tiles, strict=True)) if tiles else ones)


def _load(op: LoadOp, operands: list[AxisInfo]) -> AxisInfo:
    """Equal addresses, of which all or none are on, have one value, if nobody changes it meanwhile."""
    nothing = unknown(op.result)
    if op.is_volatile.value.data or not shape_of(op.ptr.type):
        return nothing
    return nothing._replace(constancy=_same_groups(op, operands).constancy)


def _first(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    return operands[0]


def _resized(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    """In another number of bits a constant may be another number."""
    return operands[0]._replace(constant=None)


def _zero_extended(op: ExtUIOp, operands: list[AxisInfo]) -> AxisInfo:
    """What counts up from -1 to 0 does not as numbers without a sign: `(i - 1).to(uint32).to(uint64)`."""
    resized = _resized(op, operands)
    return resized if relies_on_natural(op.input, function_of(op)) else in_aligned_groups(resized, MAX_DIVISIBILITY)


def _truncated(op: TruncIOp, operands: list[AxisInfo]) -> AxisInfo:
    """What counts up beyond the largest number of fewer bits goes on with the lowest: `(first + i).to(int32)`."""
    return in_aligned_groups(_resized(op, operands), min(1 << bit_width_of(op.result.type) - 1, MAX_DIVISIBILITY))


def _select(op: SelectOp, operands: list[AxisInfo]) -> AxisInfo:
    condition, *values = operands
    joined = values[0].join(values[1])
    if not shape_of(op.condition.type):
        return joined
    axes = range(len(joined.contiguity))
    contiguity = tuple(gcd(joined.contiguity[a], condition.constancy[a]) for a in axes)
    return joined._replace(
        contiguity=contiguity,
        divisibility=tuple(joined.divisibility_at(a, contiguity[a]) for a in axes),
        constancy=tuple(gcd(joined.constancy[a], condition.constancy[a]) for a in axes),
    )


def _minmax(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    joined = operands[0].join(operands[1])
    return joined._replace(contiguity=(1,) * len(joined.contiguity), divisibility=_each(joined))


def _each(info: AxisInfo) -> tuple[int, ...]:
    return tuple(info.divisibility_at(a, 1) for a in range(len(info.contiguity)))


def rule_of(op: Operation, rules: Mapping[type[Operation], Rule]) -> Rule | None:
    """The rule of an op, in a table of them; None where nothing is known of its result."""
    rule = rules.get(type(op))
    if rule is None and len(op.results) == 1 and op._operands and shape_of(op.results[0].type) and is_elementwise(op):
        return _same_groups
    return rule


RULES: dict[type[Operation], Rule] = {
    arith.ConstantOp: _constant,
    MakeRangeOp: _make_range,
    SplatOp: _splat,
    ExpandDimsOp: _expand_dims,
    BroadcastOp: _broadcast,
    TransOp: _trans,
    ConvertLayoutOp: _first,
    AddPtrOp: _addptr,
    LoadOp: _load,
    arith.AddiOp: _add,
    arith.SubiOp: _sub,
    arith.MuliOp: _mul,
    arith.DivSIOp: _div,
    arith.DivUIOp: _div,
    arith.RemSIOp: _rem,
    arith.RemUIOp: _rem,
    arith.ShLIOp: _shift_by(_mul),
    arith.ShRSIOp: _shift_by(_div),
    arith.ShRUIOp: _shift_by(_div),
    arith.MinSIOp: _minmax,
    arith.MaxSIOp: _minmax,
    arith.MinUIOp: _minmax,
    arith.MaxUIOp: _minmax,
    ExtSIOp: _first,
    ExtUIOp: _zero_extended,
    TruncIOp: _truncated,
    BitcastOp: _bitcast,
    CmpIOp: _cmpi,
    SelectOp: _select,
}
