"""Conversions between floats and integers in each rounding, for every target.

float2int_rd:  the whole number below, then cut off: exact
ll2float_ru:   rounded to nearest, compared with the integer, and the float above where it is less
"""

from __future__ import annotations

from deuteron.backend.llvm.types import element
from deuteron.backend.math.extern.whole import whole_number
from deuteron.backend.math.number import Function, Number, any_of, downward, nearest, toward_zero, upward, where

_TO_WHOLE = {"rn": nearest, "rz": toward_zero, "rd": downward, "ru": upward}
_INTEGERS = {"int": ("i32", True), "uint": ("i32", False), "ll": ("i64", True), "ull": ("i64", False)}
_FLOATS = ("float", "double")


def stepped(y: Number, is_above: Number, is_below: Number, mode: str) -> Number:
    """y, or the number next to it in the direction of the rounding, where it is above or below the exact value."""
    name = element(y.type)
    bits = y.bits()
    is_negative = bits < 0
    inward, outward = (bits - 1).as_float(name), (bits + 1).as_float(name)
    down = where(y.equals(0.0), -_smallest(y), where(is_negative, outward, inward))
    up = where(y.equals(0.0), _smallest(y), where(is_negative, inward, outward))
    if mode == "rd":
        return where(is_above, down, y)
    if mode == "ru":
        return where(is_below, up, y)
    if mode == "rz":
        return where(any_of(is_above & (y > 0.0), is_below & (y < 0.0)), inward, y)
    return y


def _smallest(y: Number) -> Number:
    return y.bits().number(1).as_float(element(y.type))


def to_integer(name: str, signed: bool, mode: str) -> Function:
    return lambda x: whole_number(_TO_WHOLE[mode](x), name, signed)


def to_float(name: str, signed: bool, mode: str) -> Function:
    def emit(x: Number) -> Number:
        y = x.to_float(name, signed)
        if mode == "rn":
            return y
        # Where the float is too large for the integer it is above it, and saturation gives the largest, too small.
        back = y.to_integer(element(x.type), signed)
        bits = int(element(x.type)[1:])
        is_too_large = y >= 2.0 ** (bits - signed)
        is_less = back < x if signed else back.below(x)
        is_more = x < back if signed else x.below(back)
        return stepped(y, any_of(is_too_large, is_more), is_less & (is_too_large ^ True), mode)

    return emit


def to_single(mode: str) -> Function:
    """From double."""

    def emit(x: Number) -> Number:
        y = x.narrow("float")
        back = y.extend("double")
        return stepped(y, back > x, back < x, mode)

    return emit


FUNCTIONS: dict[str, Function] = {}
for _mode in _TO_WHOLE:
    FUNCTIONS[f"double2float_{_mode}"] = to_single(_mode)
    for _name, (_type, _signed) in _INTEGERS.items():
        for _float in _FLOATS:
            FUNCTIONS[f"{_float}2{_name}_{_mode}"] = to_integer(_type, _signed, _mode)
            FUNCTIONS[f"{_name}2{_float}_{_mode}"] = to_float(_float, _signed, _mode)
