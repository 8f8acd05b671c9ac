"""Angles too large for pi/2 in three parts: reduced exactly, one lane at a time, by a function of the module.

    { double r, double rest, i64 n } @reduce_large.double(double x)

    x = r + rest + n pi/2 modulo 2 pi, |r| <= pi/4; NaN for infinity

x is m * 2**k with a whole m of 53 bits. Of the bits of 1 / (2 pi) only 192 matter, those from position k
on: what stands before gives whole turns, what comes after is below the result's precision (Payne and Hanek,
1983). m times them, as three 64-bit products, is the fraction of a turn in 128 bits; its first two bits,
rounded, are n.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from deuteron.backend.llvm.builder import Builder, mangle
from deuteron.backend.llvm.module import Module
from deuteron.backend.llvm.types import Value, array_const, byte_width, const, element, width
from deuteron.backend.math.number import FloatUnit, Number
from deuteron.backend.math.pair import Pair, quick_sum
from deuteron.backend.math.polynomial import number
from deuteron.backend.math.vectors import any_lane

Reduce = Callable[[Builder, Value], Sequence[Value]]  # of an angle: r, its rest and n

_FEW_LANES = 4
_UNSEEN_BITS = (1 << 11) - 1  # of an i64, those that a double has no room for
_TAU_REST = 2.4492935982947064e-16
_PLAIN = FloatUnit(fuses=False, rounds=False, doubles=True)

# the first 1216 bits of 1 / (2 pi) after the point; 64 zeros go before them, as k is -32 and more
_TURN_BITS = int(
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba827464873f877ac72c4a"
    "69cfba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603fbcbc462d6829b47db4d9fb3"
    "c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e357421580cc11bf1edaea",
    16,
)
_TURN_BITS_COUNT = 1216


def replace_large(b: Builder, x: Value, reduce_small: Reduce, limit: float, reduce_large: Reduce) -> Sequence[Value]:
    """r, its rest and n of angles, one way below the limit and another one, lane by lane, from it on."""
    is_large = b.fcmp("oge", b.fabs(x), number(x, limit))
    if width(x.type) == 1:
        with b.if_(is_large, "large_angle") as branch:
            branch.yield_(*reduce_large(b, x))
            branch.otherwise()
            branch.yield_(*reduce_small(b, x))
        return branch.results
    reduced = reduce_small(b, x)
    with b.if_(_is_any(b, is_large), "large_angle") as branch:
        branch.yield_(*_replace_lanes(b, x, reduced, limit, reduce_large))
        branch.otherwise()
        branch.yield_(*reduced)
    return branch.results


def _lanes(b: Builder, value: Value) -> list[Value]:
    return [b.extractelement(value, index) for index in range(width(value.type))]


def _is_any(b: Builder, lanes: Value) -> Value:
    """Of as few as GPUs take together one by one: there LLVM would make a number of their bits first."""
    if width(lanes.type) > _FEW_LANES:
        return any_lane(b, lanes)
    return reduce(b.or_, _lanes(b, lanes))


def _replace_lanes(b: Builder, x: Value, reduced: Sequence[Value], limit: float, reduce_large: Reduce) -> list[Value]:
    """Many by a function of the module with a loop, which has them in memory: written out, 64 lanes took longer to
    compile than all else.
    """
    if width(x.type) <= _FEW_LANES:
        return _replace_few_lanes(b, x, reduced, limit, reduce_large)
    name = f"reduce_large_lanes.{mangle(x.type)}.{len(reduced)}"
    result = f"{{ {', '.join(value.type for value in reduced)} }}"
    if not b.module.has_function(name):
        _define_lanes(b.module, name, result, [value.type for value in (x, *reduced)], limit, reduce_large)
    made = b.call(result, name, x, *reduced)
    return [b.extractvalue(made, index, value.type) for index, value in enumerate(reduced)]


def _replace_few_lanes(
    b: Builder, x: Value, reduced: Sequence[Value], limit: float, reduce_large: Reduce
) -> list[Value]:
    made = list(reduced)
    for index, (angle, *small) in enumerate(zip(*(_lanes(b, value) for value in (x, *reduced)), strict=True)):
        with b.if_(b.fcmp("oge", b.fabs(angle), number(angle, limit)), "large_lane") as branch:
            branch.yield_(*reduce_large(b, angle))
            branch.otherwise()
            branch.yield_(*small)
        made = [b.insertelement(value, part, index) for value, part in zip(made, branch.results, strict=True)]
    return made


def _define_lanes(module: Module, name: str, result: str, types: list[str], limit: float, reduce_large: Reduce) -> None:
    parameters = [(type, f"x{index}") for index, type in enumerate(types)]
    b = module.function(name, result, parameters, attributes="nounwind noinline cold")
    given = [Value(type, value.text) for type, value in zip(types, b.parameters, strict=True)]
    places = [b.alloca(element(value.type), width(value.type)) for value in given]
    for value, place in zip(given, places, strict=True):
        b.store(value, place, byte_width(element(value.type)))
    lane_types = [element(type) for type in types]
    with b.loop(const("i64", 0), const("i64", width(types[0])), const("i64", 1), hint="lane") as loop:
        angle, *others = (b.gep(type, place, loop.index) for type, place in zip(lane_types, places, strict=True))
        x = b.load(lane_types[0], angle)
        with b.if_(b.fcmp("oge", b.fabs(x), number(x, limit)), "large_lane"):
            for value, place in zip(reduce_large(b, x), others, strict=True):
                b.store(value, place)
    made = Value(result, "poison")
    for index, (type, place) in enumerate(zip(types[1:], places[1:], strict=True)):
        made = b.insertvalue(made, b.load(type, place, byte_width(element(type))), index)
    b.ret(made)


@dataclass(frozen=True)
class LargeAngles:
    """Reduces one angle of a type by a function of the module: x is m * 2**k, of which `split` gets m and the three
    words of 1 / (2 pi) from position k on, and gives n, r and its rest. `num_words`: those that any k needs, of which
    the first is zero, as k is -32 and more.
    """

    type: str
    bits: int
    mantissa_bits: int
    num_words: int
    split: Callable[[Builder, Value, Sequence[Value]], tuple[Value, Value, Value]]

    @property
    def _integer(self) -> str:
        return f"i{self.bits}"

    @property
    def _results(self) -> tuple[str, str, str]:
        return self.type, self.type, self._integer

    def reduce(self, b: Builder, x: Value) -> list[Value]:
        """r, its rest and n."""
        name, result = f"reduce_large.{self.type}", f"{{ {', '.join(self._results)} }}"
        if not b.module.has_function(name):
            self._define(b.module, name, result)
        made = b.call(result, name, x)
        return [b.extractvalue(made, index, type) for index, type in enumerate(self._results)]

    def _define(self, module: Module, name: str, result: str) -> None:
        b = module.function(name, result, [(self.type, "x")], attributes="nounwind noinline cold")
        integer, hidden = self._integer, 1 << self.mantissa_bits
        most = (1 << self.bits - 1 - self.mantissa_bits) - 1
        bits = b.bitcast(b.parameters[0], integer)
        exponent = b.and_(b.lshr(bits, const(integer, self.mantissa_bits)), const(integer, most))
        m = b.or_(b.and_(bits, const(integer, hidden - 1)), const(integer, hidden))
        first = const(integer, most // 2 + self.mantissa_bits - self.bits)
        n, r, rest = self.split(b, m, self._turn_window(b, b.sub(exponent, first)))
        is_negative = b.icmp("slt", bits, const(integer, 0))
        r, rest = (b.select(is_negative, b.fneg(part), part) for part in (r, rest))
        n = b.select(is_negative, b.sub(const(integer, 0), n), n)
        r = b.select(b.icmp("eq", exponent, const(integer, most)), const(self.type, math.nan), r)
        made = Value(result, "poison")
        for index, value in enumerate((r, rest, n)):
            made = b.insertvalue(made, value, index)
        b.ret(made)

    def _turn_window(self, b: Builder, position: Value) -> list[Value]:
        """Three words of 1 / (2 pi) from a bit position on."""
        integer, last = self._integer, self.bits - 1
        rests = [_TURN_BITS >> _TURN_BITS_COUNT - self.bits * count for count in range(self.num_words)]
        table = b.module.constant(array_const(integer, [rest & (1 << self.bits) - 1 for rest in rests]))
        index, shift = b.lshr(position, const(integer, last.bit_length())), b.and_(position, const(integer, last))
        first = b.gep(integer, table, index)
        words = [b.load(integer, b.gep(integer, first, const(integer, i)), align=self.bits // 8) for i in range(4)]
        pairs = zip(words, words[1:], strict=False)
        return [b.intrinsic("llvm.fshl", integer, high, low, shift) for high, low in pairs]


def _multiply(b: Builder, m: Value, w0: Value, w1: Value, w2: Value) -> Value:
    """The upper 128 of the low 192 bits of m * (w0, w1, w2)."""
    wide = b.zext(m, "i128")
    last = b.lshr(b.mul(wide, b.zext(w2, "i128")), const("i128", 64))
    middle = b.add(b.mul(wide, b.zext(w1, "i128")), last)
    return b.add(b.shl(b.zext(b.mul(m, w0), "i128"), const("i128", 64)), middle)


def _split(b: Builder, m: Value, window: Sequence[Value]) -> tuple[Value, Value, Value]:
    """The quarter turns nearest to a fraction of 2**128, and the angle that is left, in two parts."""
    turn = _multiply(b, m, *window)
    n = b.lshr(b.add(turn, const("i128", 1 << 125)), const("i128", 126))
    rest = b.sub(turn, b.shl(n, const("i128", 126)))
    is_negative = b.icmp("slt", rest, const("i128", 0))
    size = b.select(is_negative, b.sub(const("i128", 0), rest), rest)
    high, low = b.trunc(b.lshr(size, const("i128", 64)), "i64"), b.trunc(size, "i64")
    upper = b.and_(high, const("i64", ~_UNSEEN_BITS))
    exact, middle, last = (Number(b, b.uitofp(part, "double"), _PLAIN) for part in (upper, b.sub(high, upper), low))
    turns = quick_sum(exact * 2.0**-64, middle * 2.0**-64 + last * 2.0**-128)
    angle = turns * Pair(turns.high.number(math.tau), turns.high.number(_TAU_REST))
    parts = (b.select(is_negative, b.fneg(part.value), part.value) for part in angle)
    return b.trunc(n, "i64"), *parts


reduce_large = LargeAngles("double", 64, 52, 20, _split).reduce
