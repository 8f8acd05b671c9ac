"""Integer tiles whose bits are those of the place: functions over F2 of an element's position.

    i = arange(0, 8)                   bits of the position: i2 i1 i0
    i ^ 4                              columns (1, 2, 4), constant 4
    (i >> 1) & 1                       columns (0, 1, 0)
    1 - (i & 1), (i & 2) != 0          columns (1, 0, 0), constant 1;  (0, 1, 0)
    (i & 1).to(tl.float32)             as the integers that were converted
    (i * 3), i + n                     not known

The position is row-major, so that a reshape leaves the columns as they are. An op on one moving bit is computed for
both of its values, whatever the op is.

    exchange_mask(gather(x, i ^ 4))    4: each element is exchanged for that whose position differs in bit 2
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.memo import evaluate
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.casts import ExtSIOp, ExtUIOp, SIToFPOp, TruncIOp, UIToFPOp
from deuteron.ir.tt.indexing import GatherOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, TransOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.types import bit_width_of, is_integer, is_tile, num_elements_of, shape_of


@dataclass(frozen=True)
class IndexBits:
    """The element at a position is `constant` XOR `columns[k]` for each bit k that is set in the position: an unsigned
    number of `width` bits.
    """

    width: int
    columns: tuple[int, ...]
    constant: int

    def at(self, position: int) -> int:
        value = self.constant
        for bit, column in enumerate(self.columns):
            value ^= column if position >> bit & 1 else 0
        return value

    @property
    def moving(self) -> tuple[int, ...]:
        """The bits of the position that make a difference."""
        return tuple(bit for bit, column in enumerate(self.columns) if column)

    @property
    def varying(self) -> int:
        """The bits of the value that are not everywhere the same."""
        total = 0
        for column in self.columns:
            total |= column
        return total

    @property
    def possible(self) -> int:
        """The bits of the value that are set somewhere."""
        return self.varying | self.constant

    def with_bit(self, bit: int, is_set: int) -> IndexBits:
        """What is where a bit of the position is 1 or 0, everywhere."""
        columns = tuple(0 if other == bit else column for other, column in enumerate(self.columns))
        return replace(self, columns=columns, constant=self.constant ^ self.columns[bit] * is_set)

    def exchanged(self, bit: int) -> IndexBits:
        """What is where a bit of the position is the other one."""
        return replace(self, constant=self.constant ^ self.columns[bit])

    def map(self, change: Callable[[int], int], width: int | None = None) -> IndexBits:
        """A linear function of the value."""
        wide = self.width if width is None else width
        mask = (1 << wide) - 1
        return IndexBits(wide, tuple(change(column) & mask for column in self.columns), change(self.constant) & mask)


Rule = Callable[..., IndexBits | None]


def at_one_place(op: Operation, numbers: Sequence[int]) -> int | None:
    """What an elementwise op gives for numbers without signs, if that is found: bits that no position moves."""
    rule = _RULES.get(type(op))
    if rule is None:
        return None
    operands = zip(op.operands, numbers, strict=True)
    found = rule(op, *(IndexBits(bit_width_of(operand.type), (), number) for operand, number in operands))
    return None if found is None else found.constant


class IndexBitsAnalysis:
    """Which tiles are functions of the position, each looked at once; ops may be replaced by equal ones meanwhile."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, IndexBits | None] = {}

    def of(self, value: SSAValue) -> IndexBits | None:
        """The function that a tile of integers is, if one is found."""
        return evaluate(value, self._known, _operands, self._compute)

    def _compute(self, value: SSAValue) -> IndexBits | None:
        if not is_tile(value.type):
            return None
        number = constant_value(value) if is_integer(value.type) else None
        if number is not None:
            width = bit_width_of(value.type)
            return IndexBits(width, (0,) * _log2(shape_of(value.type)), number & (1 << width) - 1)
        operands = [self._known[operand] for operand in _operands(value)]
        if None in operands or not isinstance(value.owner, Operation):
            return None
        rule = _RULES.get(type(value.owner))
        return rule(value.owner, *operands) if rule is not None else None


def exchange_mask(op: GatherOp) -> int | None:
    """By what the position of each element that is taken differs from the own one, if that is the same everywhere."""
    shape, axis = shape_of(op.src.type), op.axis.value.data
    found = IndexBitsAnalysis().of(op.indices) if shape == shape_of(op.indices.type) else None
    if found is None:
        return None
    behind, along = _log2(shape[axis + 1 :]), _log2(shape[axis : axis + 1])
    own = tuple(1 << bit - behind if behind <= bit < behind + along else 0 for bit in range(len(found.columns)))
    taken = found.map(lambda index: index, width=along)
    return taken.constant << behind if taken.columns == own else None


def _log2(shape: Sequence[int]) -> int:
    return prod(shape).bit_length() - 1


def _operands(value: SSAValue) -> Sequence[SSAValue]:
    """What a function is found from; of ops without a rule nothing is looked at."""
    op = value.owner
    return op.operands if isinstance(op, Operation) and type(op) in _RULES else ()


# -- shapes ---


def _make_range(op: MakeRangeOp) -> IndexBits | None:
    start, extent, width = op.start.value.data, num_elements_of(op.result.type), bit_width_of(op.result.type)
    columns = tuple(1 << bit for bit in range(_log2((extent,))))
    return IndexBits(width, columns, start & (1 << width) - 1) if start % extent == 0 else None


def _same(op: Operation, source: IndexBits) -> IndexBits:
    return source


def _reshape(op: ReshapeOp, source: IndexBits) -> IndexBits | None:
    return source if op.allow_reorder is None else None


def _by_dimension(source: IndexBits, shape: Sequence[int]) -> list[tuple[int, ...]]:
    """The columns of each dimension."""
    parts, begin = [], 0
    for extent in reversed(shape):
        parts.append(source.columns[begin : begin + _log2((extent,))])
        begin += _log2((extent,))
    return parts[::-1]


def _joined(source: IndexBits, parts: Sequence[tuple[int, ...]]) -> IndexBits:
    return replace(source, columns=tuple(column for part in reversed(parts) for column in part))


def _broadcast(op: BroadcastOp, source: IndexBits) -> IndexBits:
    before, after = shape_of(op.src.type), shape_of(op.result.type)
    parts = _by_dimension(source, before)
    repeated = [
        (0,) * _log2((new,)) if old != new else part for old, new, part in zip(before, after, parts, strict=True)
    ]
    return _joined(source, repeated)


def _trans(op: TransOp, source: IndexBits) -> IndexBits:
    parts = _by_dimension(source, shape_of(op.src.type))
    return _joined(source, [parts[axis] for axis in op.permutation])


# -- arithmetic ---


def _at_one_bit(compute: Callable[..., int]) -> Rule:
    """An op on what differs in one bit of the position at most: computed for both values of it."""

    def rule(op: Operation, *operands: IndexBits) -> IndexBits | None:
        moving = {bit for operand in operands for bit in operand.moving}
        if len(moving) > 1:
            return None
        width = bit_width_of(op.results[0].type)
        low = compute(*(operand.constant for operand in operands)) & (1 << width) - 1
        columns = [0] * len(operands[0].columns)
        for bit in moving:
            columns[bit] = low ^ compute(*(operand.at(1 << bit) for operand in operands)) & (1 << width) - 1
        return IndexBits(width, tuple(columns), low)

    return rule


def _xor(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits:
    columns = tuple(x ^ y for x, y in zip(lhs.columns, rhs.columns, strict=True))
    return IndexBits(lhs.width, columns, lhs.constant ^ rhs.constant)


def _add(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    """Without bits in common nothing is carried."""
    return _at_one_bit(operator.add)(op, lhs, rhs) if lhs.possible & rhs.possible else _xor(op, lhs, rhs)


def _or(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    return _at_one_bit(operator.or_)(op, lhs, rhs) if lhs.possible & rhs.possible else _xor(op, lhs, rhs)


def _sub(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    """From bits that are set everywhere nothing is borrowed."""
    is_set = lhs.constant & ~lhs.varying
    return _at_one_bit(operator.sub)(op, lhs, rhs) if rhs.possible & ~is_set else _xor(op, lhs, rhs)


def _and(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    for some, other in ((lhs, rhs), (rhs, lhs)):
        if not other.varying:
            return some.map(lambda value, mask=other.constant: value & mask)
    return _at_one_bit(operator.and_)(op, lhs, rhs)


def _times(x: IndexBits, factor: int) -> IndexBits | None:
    """A product with a power of two is a shift."""
    return x.map(lambda value: value * factor) if factor and not factor & factor - 1 else None


def _mul(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    shifted = None if rhs.varying else _times(lhs, rhs.constant)
    return shifted or _at_one_bit(operator.mul)(op, lhs, rhs)


def _shift(change: Callable[[int, int], int]) -> Rule:
    """By the same number everywhere. One to the right takes in no signs: the number is not negative."""

    def rule(op: Operation, x: IndexBits, amount: IndexBits) -> IndexBits | None:
        is_known = not amount.varying and amount.constant < x.width and (change is operator.lshift or _is_positive(x))
        return x.map(lambda value: change(value, amount.constant)) if is_known else None

    return rule


def _divide(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    factor = _divisor(lhs, rhs)
    return _quotient(op, operator.floordiv, lhs, rhs) if factor is None else lhs.map(lambda value: value // factor)


def _remainder(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    factor = _divisor(lhs, rhs)
    return _quotient(op, operator.mod, lhs, rhs) if factor is None else lhs.map(lambda value: value & factor - 1)


def _quotient(op: Operation, compute: Callable[..., int], lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    """Of numbers that are not negative by one that is positive."""
    is_plain = _is_positive(lhs) and _is_positive(rhs) and not rhs.varying and rhs.constant
    return _at_one_bit(compute)(op, lhs, rhs) if is_plain else None


def _select(op: SelectOp, condition: IndexBits, if_true: IndexBits, if_false: IndexBits) -> IndexBits | None:
    if not condition.varying:
        return if_true if condition.constant else if_false
    if not is_integer(op.result.type):
        return None
    return _at_one_bit(lambda is_true, x, y: x if is_true else y)(op, condition, if_true, if_false)


def _of_signed(compute: Callable[..., int]) -> Rule:
    def rule(op: Operation, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
        return _at_one_bit(lambda x, y: compute(_signed(x, lhs.width), _signed(y, rhs.width)))(op, lhs, rhs)

    return rule


def _divisor(lhs: IndexBits, rhs: IndexBits) -> int | None:
    """The power of two by which a number is divided that is not negative."""
    is_power = not rhs.varying and _is_positive(rhs) and rhs.constant and not rhs.constant & rhs.constant - 1
    return rhs.constant if is_power and _is_positive(lhs) else None


def _is_positive(x: IndexBits) -> bool:
    return not x.possible >> x.width - 1


def _zero_extended(op: Operation, x: IndexBits) -> IndexBits:
    return x.map(lambda value: value, bit_width_of(op.results[0].type))


def _sign_extended(op: Operation, x: IndexBits) -> IndexBits:
    """The sign goes into all further bits, which is linear."""
    return x.map(lambda value: _signed(value, x.width), bit_width_of(op.results[0].type))


def _to_float(op: Operation, x: IndexBits) -> IndexBits | None:
    return x if _is_positive(x) else None


def _signed(value: int, width: int) -> int:
    return value - (value >> width - 1 << width)


def _compare(op: CmpIOp, lhs: IndexBits, rhs: IndexBits) -> IndexBits | None:
    order = getattr(operator, op.predicate_name[-2:])
    rule = _of_signed(order) if op.predicate_name.startswith("s") else _at_one_bit(order)
    return rule(op, lhs, rhs)


_RULES: dict[type[Operation], Rule] = {
    MakeRangeOp: _make_range,
    ExpandDimsOp: _same,
    ReshapeOp: _reshape,
    BroadcastOp: _broadcast,
    TransOp: _trans,
    ConvertLayoutOp: _same,
    arith.AddiOp: _add,
    arith.SubiOp: _sub,
    arith.MuliOp: _mul,
    arith.AndIOp: _and,
    arith.OrIOp: _or,
    arith.XOrIOp: _xor,
    arith.ShLIOp: _shift(operator.lshift),
    arith.ShRSIOp: _shift(operator.rshift),
    arith.ShRUIOp: _shift(operator.rshift),
    arith.MaxSIOp: _of_signed(max),
    arith.MinSIOp: _of_signed(min),
    arith.MaxUIOp: _at_one_bit(max),
    arith.MinUIOp: _at_one_bit(min),
    arith.DivSIOp: _divide,
    arith.DivUIOp: _divide,
    arith.RemSIOp: _remainder,
    arith.RemUIOp: _remainder,
    ExtUIOp: _zero_extended,
    ExtSIOp: _sign_extended,
    TruncIOp: _zero_extended,
    SIToFPOp: _to_float,
    UIToFPOp: _to_float,
    CmpIOp: _compare,
    SelectOp: _select,
}
