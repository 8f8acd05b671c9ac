"""What is known of integers and pointers along each dimension of a tile: contiguity, divisibility, constancy.

Along a dimension, a tile falls into aligned groups of neighbours, all of one power-of-two size, such that

    contiguity    within a group, values count up by one (pointers: by one element)
    divisibility  the first value of every contiguous group is a multiple of this (pointers: in bytes)
    constancy     within a group of that size, all values are equal

    offs = pid * 64 + arange(0, 64)      contiguity 64, divisibility 64, constancy 1
    x + offs, x divisible by 16          contiguity 64, divisibility 16 (bytes), constancy 1
    offs < n, n divisible by 16          constancy 16

It is a forward dataflow analysis; values that loops carry start with what enters and are weakened until stable.
Masks are where `constancy` matters: a vector access needs one mask for all of its elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.casts import ExtSIOp, ExtUIOp, TruncIOp
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp, TransOp
from deuteron.ir.types import byte_width_of, pointee_of, shape_of

MAX_DIVISIBILITY = 1 << 30


def power_of_two_divisor(number: int) -> int:
    """The largest power of two that divides a number; a large one for 0."""
    return min(number & -number, MAX_DIVISIBILITY) if number else MAX_DIVISIBILITY


@dataclass(frozen=True)
class AxisInfo:
    """What is known along each dimension; a scalar has one entry. `constant` is the value if it is one; `step` is
    by how much contiguous neighbours differ: 1, or the bytes of an element for pointers.
    """

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    constant: int | None = None
    step: int = 1

    def divisibility_at(self, axis: int, group: int) -> int:
        """What divides the first value of every group of that size."""
        if group >= self.contiguity[axis]:
            return self.divisibility[axis]
        return gcd(self.divisibility[axis], group * self.step)

    def join(self, other: AxisInfo) -> AxisInfo:
        """What holds of a value that is either one or the other."""
        axes = range(len(self.contiguity))
        contiguity = tuple(gcd(self.contiguity[a], other.contiguity[a]) for a in axes)
        return AxisInfo(
            contiguity,
            tuple(gcd(self.divisibility_at(a, contiguity[a]), other.divisibility_at(a, contiguity[a])) for a in axes),
            tuple(gcd(self.constancy[a], other.constancy[a]) for a in axes),
            self.constant if self.constant == other.constant else None,
            max(self.step, other.step),
        )


def unknown(value: SSAValue) -> AxisInfo:
    """Nothing but what the shape says."""
    ones = (1,) * max(len(shape_of(value.type)), 1)
    return AxisInfo(ones, ones, ones)


def _uniform(value: SSAValue, divisibility: int, constant: int | None = None) -> AxisInfo:
    shape = shape_of(value.type) or (1,)
    return AxisInfo((1,) * len(shape), (divisibility,) * len(shape), shape, constant)


Rule = Callable[[Operation, list[AxisInfo]], AxisInfo]


def _constant(op: Operation, _: list[AxisInfo]) -> AxisInfo:
    number = constant_value(op.results[0])
    if not isinstance(number, int):
        return unknown(op.results[0])
    return _uniform(op.results[0], power_of_two_divisor(number), number)


def _make_range(op: MakeRangeOp, _: list[AxisInfo]) -> AxisInfo:
    start, extent = op.start.value.data, shape_of(op.result.type)[0]
    return AxisInfo((extent,), (power_of_two_divisor(start),), (1,))


def _splat(op: SplatOp, operands: list[AxisInfo]) -> AxisInfo:
    return _uniform(op.result, operands[0].divisibility[0], operands[0].constant)


def _expand_dims(op: ExpandDimsOp, operands: list[AxisInfo]) -> AxisInfo:
    source, axis = operands[0], op.axis.value.data
    everywhere = min(source.divisibility_at(a, 1) for a in range(len(source.contiguity)))

    def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:axis], value, *values[axis:])

    return replace(
        source,
        contiguity=insert(source.contiguity, 1),
        divisibility=insert(source.divisibility, everywhere),
        constancy=insert(source.constancy, 1),
    )


def _broadcast(op: BroadcastOp, operands: list[AxisInfo]) -> AxisInfo:
    source, shape = operands[0], shape_of(op.result.type)
    repeated = [old != new for old, new in zip(shape_of(op.src.type), shape, strict=True)]
    return replace(
        source,
        contiguity=tuple(1 if r else c for r, c in zip(repeated, source.contiguity, strict=True)),
        constancy=tuple(extent if r else c for r, extent, c in zip(repeated, shape, source.constancy, strict=True)),
    )


def _trans(op: TransOp, operands: list[AxisInfo]) -> AxisInfo:
    source, order = operands[0], op.permutation
    return replace(
        source,
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
    return _sum(pointer, replace(offset, divisibility=scaled, step=size), commutes=True, constant=None)


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
    groups = tuple(
        gcd(gcd(lhs.contiguity[a], lhs.divisibility[a]), power_of_two_divisor(rhs.constant) if rhs.constant else 1)
        for a in axes
    )
    constancy = tuple(max(gcd(lhs.constancy[a], rhs.constancy[a]), groups[a]) for a in axes)
    return AxisInfo((1,) * len(constancy), (1,) * len(constancy), constancy)


def _rem(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    lhs, rhs = operands
    axes = range(len(lhs.contiguity))
    uniform = [rhs.constancy[a] for a in axes]
    contiguity = tuple(
        gcd(gcd(lhs.contiguity[a], lhs.divisibility[a]), gcd(rhs.divisibility[a], uniform[a])) for a in axes
    )
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
    constancy = tuple(gcd(*(info.constancy[a] for info in operands)) for a in range(len(operands[0].constancy)))
    ones = (1,) * len(constancy)
    return AxisInfo(ones, ones, constancy)


def _first(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    return operands[0]


def _select(op: SelectOp, operands: list[AxisInfo]) -> AxisInfo:
    condition, *values = operands
    joined = values[0].join(values[1])
    if not shape_of(op.condition.type):
        return joined
    axes = range(len(joined.contiguity))
    contiguity = tuple(gcd(joined.contiguity[a], condition.constancy[a]) for a in axes)
    return replace(
        joined,
        contiguity=contiguity,
        divisibility=tuple(joined.divisibility_at(a, contiguity[a]) for a in axes),
        constancy=tuple(gcd(joined.constancy[a], condition.constancy[a]) for a in axes),
    )


def _minmax(op: Operation, operands: list[AxisInfo]) -> AxisInfo:
    joined = operands[0].join(operands[1])
    return replace(joined, contiguity=(1,) * len(joined.contiguity), divisibility=_each(joined))


def _each(info: AxisInfo) -> tuple[int, ...]:
    return tuple(info.divisibility_at(a, 1) for a in range(len(info.contiguity)))


RULES: dict[type[Operation], Rule] = {
    arith.ConstantOp: _constant,
    MakeRangeOp: _make_range,
    SplatOp: _splat,
    ExpandDimsOp: _expand_dims,
    BroadcastOp: _broadcast,
    TransOp: _trans,
    AddPtrOp: _addptr,
    arith.AddiOp: _add,
    arith.SubiOp: _sub,
    arith.MuliOp: _mul,
    arith.DivSIOp: _div,
    arith.DivUIOp: _div,
    arith.RemSIOp: _rem,
    arith.RemUIOp: _rem,
    arith.MinSIOp: _minmax,
    arith.MaxSIOp: _minmax,
    arith.MinUIOp: _minmax,
    arith.MaxUIOp: _minmax,
    arith.AndIOp: _same_groups,
    arith.OrIOp: _same_groups,
    arith.XOrIOp: _same_groups,
    ExtSIOp: _first,
    ExtUIOp: _first,
    TruncIOp: _first,
    CmpIOp: _cmpi,
    SelectOp: _select,
}


class AxisInfoAnalysis:
    """Axis info of every value of a function."""

    def __init__(self, func: FuncOp):
        self._infos: dict[SSAValue, AxisInfo] = {}
        for index, argument in enumerate(func.args):
            self._infos[argument] = _uniform(argument, func.arg_divisibility(index))
        self._visit_block(func.body.block)

    def of(self, value: SSAValue) -> AxisInfo:
        return self._infos.get(value) or unknown(value)

    def _visit_block(self, block: Block) -> None:
        for op in block.ops:
            self._visit(op)

    def _visit(self, op: Operation) -> None:
        if isinstance(op, scf.ForOp):
            return self._visit_for(op)
        if isinstance(op, scf.IfOp):
            return self._visit_if(op)
        for region in op.regions:
            for block in region.blocks:
                self._visit_block(block)
        rule = RULES.get(type(op))
        if rule is not None:
            info = rule(op, [self.of(operand) for operand in op.operands])
            self._infos[op.results[0]] = _with_hints(op, info)
        return None

    def _visit_for(self, op: scf.ForOp) -> None:
        induction, *carried = op.body.block.args
        bounds = self.of(op.lb).join(self.of(op.step))
        self._infos[induction] = _uniform(induction, bounds.divisibility[0])
        self._fix_point(carried, list(op.iter_args), op.body.block)
        self._bind(op.results, carried)

    def _fix_point(self, carried: list[BlockArgument], initial: list[SSAValue], body: Block) -> None:
        for argument, value in zip(carried, initial, strict=True):
            self._infos[argument] = self.of(value)
        while True:
            self._visit_block(body)
            yielded = body.last_op.operands
            joined = [self.of(a).join(self.of(y)) for a, y in zip(carried, yielded, strict=True)]
            if joined == [self.of(argument) for argument in carried]:
                return
            self._infos.update(zip(carried, joined, strict=True))

    def _visit_if(self, op: scf.IfOp) -> None:
        branches = [region.block for region in op.regions if region.blocks]
        for block in branches:
            self._visit_block(block)
        if op.results:
            yields = [block.last_op.operands for block in branches]
            for result, one, other in zip(op.results, *yields, strict=True):
                self._infos[result] = self.of(one).join(self.of(other))

    def _bind(self, results, values) -> None:
        for result, value in zip(results, values, strict=True):
            self._infos[result] = self.of(value)


def _with_hints(op: Operation, info: AxisInfo) -> AxisInfo:
    """What `tl.multiple_of`, `tl.max_contiguous` and `tl.max_constancy` promise, attached to the op."""
    for field in ("divisibility", "contiguity", "constancy"):
        hint = op.attributes.get(f"tt.{field}")
        if isinstance(hint, DenseArrayBase):
            promised = tuple(max(p, k) for p, k in zip(hint.get_values(), getattr(info, field), strict=True))
            info = replace(info, **{field: promised})
    return info
