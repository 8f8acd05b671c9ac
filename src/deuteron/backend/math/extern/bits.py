"""Integers and bits: counting, reversing, choosing bytes, high halves of products, means, absolute differences.

clz(1)   31        ffs(8)   4        byte_perm(x, y, 0x0123)   the bytes of x, reversed
"""

from __future__ import annotations

from deuteron.backend.llvm.types import bit_width, const
from deuteron.backend.math.number import Function, Number, intrinsic, where


def clz(x: Number) -> Number:
    return _counted(x, "llvm.ctlz").narrow("i32")


def popc(x: Number) -> Number:
    return intrinsic("llvm.ctpop", x).narrow("i32")


def ffs(x: Number) -> Number:
    return where(x.equals(0), 0, _counted(x, "llvm.cttz") + 1).narrow("i32")


def brev(x: Number) -> Number:
    return intrinsic("llvm.bitreverse", x)


def _counted(x: Number, name: str) -> Number:
    """With the width for 0."""
    return x.make(x.b.intrinsic(name, x.type, x.value, const("i1", False)))


def byte_perm(x: Number, y: Number, selector: Number) -> Number:
    wide = x.extend("i64") | (y.extend("i64") << 32)
    selectors = selector.extend("i64")
    result = x.number(0)
    for place in range(4):
        shift = ((selectors >> (4 * place)) & 7) << 3
        result = result | (((wide >> shift) & 0xFF).narrow("i32") << (8 * place))
    return result


def multiply_high(signed: bool) -> Function:
    """The upper half of the product: for 64 bits of four products of halves, which no target lacks."""

    def emit(x: Number, y: Number) -> Number:
        if bit_width(x.type) == 32:
            first, second = (v.sign_extend("i64") if signed else v.extend("i64") for v in (x, y))
            return ((first * second) >> 32).narrow("i32")
        high = _unsigned_high(x, y)
        if not signed:
            return high
        return high - (x.arithmetic_shift(63) & y) - (y.arithmetic_shift(63) & x)

    return emit


def _unsigned_high(x: Number, y: Number) -> Number:
    low = 0xFFFFFFFF
    x_low, x_high, y_low, y_high = x & low, x >> 32, y & low, y >> 32
    middle = x_high * y_low + ((x_low * y_low) >> 32)
    other = x_low * y_high + (middle & low)
    return x_high * y_high + (middle >> 32) + (other >> 32)


def multiply_24(signed: bool) -> Function:
    def emit(x: Number, y: Number) -> Number:
        first, second = (v << 8 for v in (x, y))
        if signed:
            return first.arithmetic_shift(8) * second.arithmetic_shift(8)
        return (first >> 8) * (second >> 8)

    return emit


def difference(signed: bool) -> Function:
    """|x - y| + z, wrapping."""

    def emit(x: Number, y: Number, z: Number) -> Number:
        is_less = x < y if signed else x.below(y)
        return where(is_less, y - x, x - y) + z

    return emit


def mean(signed: bool, up: bool) -> Function:
    """Half of the sum, without overflow: the bits that both have, and half of those that one has."""

    def emit(x: Number, y: Number) -> Number:
        half = (x ^ y).arithmetic_shift(1) if signed else (x ^ y) >> 1
        return (x | y) - half if up else (x & y) + half

    return emit


def minimum(signed: bool) -> Function:
    return lambda x, y: where(x < y if signed else x.below(y), x, y)


def maximum(signed: bool) -> Function:
    return lambda x, y: where(x < y if signed else x.below(y), y, x)


def join_double(high: Number, low: Number) -> Number:
    return ((high.extend("i64") << 32) | low.extend("i64")).as_float("double")


def low_word(x: Number) -> Number:
    return x.bits().narrow("i32")


def high_word(x: Number) -> Number:
    return (x.bits() >> 32).narrow("i32")


FUNCTIONS: dict[str, Function] = {
    "clz": clz,
    "popc": popc,
    "ffs": ffs,
    "brev": brev,
    "byte_perm": byte_perm,
    "mulhi": multiply_high(signed=True),
    "umulhi": multiply_high(signed=False),
    "mul64hi": multiply_high(signed=True),
    "umul64hi": multiply_high(signed=False),
    "mul24": multiply_24(signed=True),
    "umul24": multiply_24(signed=False),
    "sad": difference(signed=True),
    "usad": difference(signed=False),
    "hadd": mean(signed=True, up=False),
    "uhadd": mean(signed=False, up=False),
    "rhadd": mean(signed=True, up=True),
    "urhadd": mean(signed=False, up=True),
    "min": minimum(signed=True),
    "umin": minimum(signed=False),
    "llmin": minimum(signed=True),
    "ullmin": minimum(signed=False),
    "max": maximum(signed=True),
    "umax": maximum(signed=False),
    "llmax": maximum(signed=True),
    "ullmax": maximum(signed=False),
    "int_as_float": lambda x: x.as_float("float"),
    "uint_as_float": lambda x: x.as_float("float"),
    "longlong_as_double": lambda x: x.as_float("double"),
    "float_as_int": Number.bits,
    "float_as_uint": Number.bits,
    "double_as_longlong": Number.bits,
    "hiloint2double": join_double,
    "double2loint": low_word,
    "double2hiint": high_word,
}
