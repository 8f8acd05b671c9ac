"""Integer arithmetic: add, sub, mul, mad, div, rem, abs, neg, min, max, sad, dp4a, dp2a. It wraps, as NumPy's does.

mad.wide.s32 %rd1, %r1, %r2, %rd2;       d = int64(a) * int64(b) + c
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.instructions.elementwise import elementwise
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules

RULES = Rules()

_WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Towards zero; by zero gives all ones, as the GPU does."""
    safe = np.where(b == 0, b.dtype.type(1), b)
    quotient = (a - np.fmod(a, safe)) // safe
    return np.where(b == 0, ~np.zeros_like(quotient), quotient)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """With the sign of the dividend; of a division by zero the dividend."""
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, b.dtype.type(1), b)))


def multiply_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the product."""
    if a.dtype.itemsize < 8:
        wide = np.int64 if np.issubdtype(a.dtype, np.signedinteger) else np.uint64
        return (np.asarray(a, wide) * np.asarray(b, wide) >> wide(8 * a.dtype.itemsize)).astype(a.dtype)
    return _multiply_high_64(a, b)


def _multiply_high_64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = np.asarray(a).view(np.uint64), np.asarray(b).view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> shift, y & low, y >> shift
    middle = x1 * y0 + (x0 * y0 >> shift)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> shift) + (other >> shift)
    if np.issubdtype(a.dtype, np.signedinteger):
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return high.view(a.dtype)


def saturating(function, type: str):
    """`function` in 64 bits, clamped to the type."""
    limits = np.iinfo(type.replace("s", "int"))
    return lambda a, b: np.clip(function(a.astype(np.int64), np.int64(b)), limits.min, limits.max).astype(a.dtype)


_BINARY = {"add": np.add, "sub": np.subtract, "div": divide, "rem": remainder, "min": np.minimum, "max": np.maximum}
_UNARY = {"neg": np.negative, "abs": np.abs}


@RULES.pure(*_BINARY, kind="int")
def decode_binary(d: Decoding):
    type = d.type()
    function = _BINARY[d.instruction.opcode.split(".")[0]]
    if d.flag("sat"):
        function = saturating(function, type)
    elif function in (np.add, np.subtract):
        d.computes_parts(type, 2)
    if d.flag("relu"):
        function = _relu(function)
    return elementwise(d, function, type, type, type)


def _relu(function):
    return lambda a, b: np.maximum(function(a, b), 0)


@RULES.pure("add", "min", "max", kind="pair")
def decode_pair(d: Decoding):
    """Two integers of 16 bits in a register."""
    view = np.int16 if d.modifiers.pop() == "s16x2" else np.uint16
    function = _BINARY[d.instruction.opcode.split(".")[0]]
    if d.flag("relu"):
        function = _relu(function)
    d.moves_parts(4)

    def apply(a, b):
        halves = (np.ascontiguousarray(x)[..., None].view(view) for x in (a, b))
        return function(*halves).view(np.uint32)[..., 0]

    return elementwise(d, apply, "b32", "b32", "b32")


@RULES.pure(*_UNARY, kind="int")
def decode_unary(d: Decoding):
    type = d.type()
    return elementwise(d, _UNARY[d.instruction.opcode.split(".")[0]], type, type)


@RULES.pure("mul", kind="int")
def decode_mul(d: Decoding):
    type = d.type()
    form = d.choice("lo", "hi", "wide")
    if form == "wide":
        wide = _WIDER[type]
        return elementwise(d, _wide_product(wide), wide, type, type)
    if form == "lo":
        d.computes_parts(type, 2)
    return elementwise(d, np.multiply if form == "lo" else multiply_high, type, type, type)


@RULES.pure("mad", kind="int")
def decode_mad(d: Decoding):
    type = d.type()
    form = d.choice("lo", "hi", "wide")
    if form == "wide":
        wide = _WIDER[type]
        product = _wide_product(wide)
        return elementwise(d, lambda a, b, c: product(a, b) + c, wide, type, type, wide)
    if form == "lo":
        d.computes_parts(type, 3)
    product = np.multiply if form == "lo" else multiply_high
    return elementwise(d, lambda a, b, c: product(a, b) + c, type, type, type, type)


def _wide_product(type: str):
    wide = np.dtype(type.replace("s", "int").replace("uint", "u").replace("u", "uint")).type
    return lambda a, b: np.multiply(a, b, dtype=wide)


@RULES.pure("mul24", "mad24", kind="int")
def decode_mul24(d: Decoding):
    type = d.type()
    d.choice("lo")
    shift = np.dtype(np.int32 if type == "s32" else np.uint32).type(8)

    def low_24(x):
        return x << shift >> shift

    if d.instruction.opcode.startswith("mad"):
        return elementwise(d, lambda a, b, c: low_24(a) * low_24(b) + c, type, type, type, type)
    return elementwise(d, lambda a, b: low_24(a) * low_24(b), type, type, type)


@RULES.pure("sad", kind="int")
def decode_sad(d: Decoding):
    type = d.type()
    return elementwise(d, lambda a, b, c: np.maximum(a, b) - np.minimum(a, b) + c, type, type, type, type)


@RULES.pure("dp4a", "dp2a")
def decode_dot(d: Decoding):
    """Four bytes with four, or two parts of 16 bits with the lower or the upper two of four bytes."""
    second, first = d.modifiers.pop(), d.modifiers.pop()
    result = "u32" if (first, second) == ("u32", "u32") else "s32"
    has_two = d.instruction.opcode.startswith("dp2a")
    chosen = slice(*((0, 2) if d.choice("lo", "hi") == "lo" else (2, 4))) if has_two else slice(4)

    def dot(a, b, c):
        x = _parts(a, first, 16 if has_two else 8)
        y = _parts(b, second, 8)[:, chosen]
        return ((x * y).sum(1, dtype=np.int32) + np.asarray(c).view(np.int32)).view(np.asarray(c).dtype)

    return elementwise(d, dot, result, "b32", "b32", result)


def _parts(values: np.ndarray, type: str, bits: int) -> np.ndarray:
    """The parts of registers of 32 bits [threads], [threads, 32 / bits] of int32."""
    return np.asarray(values).reshape(-1, 1).view(f"{'int' if type == 's32' else 'uint'}{bits}").astype(np.int32)
