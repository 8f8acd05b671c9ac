"""Computes on narrow integers what is computed of them on wide ones, and fits: more of them are in a vector.

    w = extui(b)                i8 to i32               b4 = shrui(b, trunci(shift))        i8
    w4 = shrui(w, shift)        shift below 8           b15 = andi(b4, 15)
    w15 = andi(w4, 15)                                  w15 = extui(b15)
    n = trunci(w15)             to i8                   n = b15

So go the promotions of weights of four bits, two to a byte: `(w >> shift) & 15` with a shift that is an i32. What has
no use any more is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.ranges import largest_in_any_grid
from deuteron.dtypes import as_signed
from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtSIOp, ExtUIOp, TruncIOp
from deuteron.ir.types import bit_width_of, element_type_of, i1, is_tile, with_element_type

_Extension = ExtSIOp | ExtUIOp


def narrow_integers(ops: Iterable[Operation]) -> None:
    """Rewrite ops, which come before those that read them."""
    for op in ops:
        rule = _RULES.get(type(op))
        made = rule(op) if rule is not None and is_tile(op.results[0].type) else None
        if made is not None:
            op.results[0].replace_all_uses_with(made)


def _and(op: arith.AndIOp) -> SSAValue | None:
    """With a number that has no more bits than what was widened, however it was."""
    for wide, mask in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        number, narrow = constant_value(mask), _widened_from(wide)
        if narrow is not None and number is not None and 0 <= number < 1 << _bits(narrow):
            builder = Builder.before(op)
            low = builder.constant(as_signed(int(number), _bits(narrow)), narrow.type)
            return _widened(builder, ExtUIOp, builder.value(arith.AndIOp(narrow, low)), op)
    return None


def _shift(op: arith.ShRUIOp | arith.ShRSIOp) -> SSAValue | None:
    """To the right by less than what was widened is wide, with zeros or its sign coming in at the left."""
    narrow, most = _widened_from(op.lhs), largest_in_any_grid(op.rhs)
    if narrow is None or most is None or most >= _bits(narrow):
        return None
    extension = type(op.lhs.owner)
    if extension is ExtSIOp and not isinstance(op, arith.ShRSIOp):
        return None
    builder = Builder.before(op)
    amount = builder.value(TruncIOp(op.rhs, with_element_type(op.rhs.type, element_type_of(narrow.type))))
    shift = arith.ShRSIOp if extension is ExtSIOp else arith.ShRUIOp
    return _widened(builder, extension, builder.value(shift(narrow, amount)), op)


def _truncate(op: TruncIOp) -> SSAValue | None:
    narrow = _widened_from(op.input)
    return narrow if narrow is not None and narrow.type == op.result.type else None


def _widened_from(value: SSAValue) -> SSAValue | None:
    """The integer of more than a bit that a tile was widened from."""
    if not isinstance(value.owner, _Extension) or element_type_of(value.owner.input.type) == i1:
        return None
    return value.owner.input


def _widened(builder: Builder, extension: type[_Extension], narrow: SSAValue, op: Operation) -> SSAValue:
    return builder.value(extension(narrow, op.results[0].type))


def _bits(value: SSAValue) -> int:
    return bit_width_of(element_type_of(value.type))


_RULES: dict[type[Operation], Callable[..., SSAValue | None]] = {
    arith.AndIOp: _and,
    arith.ShRUIOp: _shift,
    arith.ShRSIOp: _shift,
    TruncIOp: _truncate,
}
