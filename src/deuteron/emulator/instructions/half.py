"""Arithmetic of f16, bf16 and pairs of them: add, sub, mul, fma, neg, abs, min, max, ex2, tanh.

    fma.rn.f16x2 %r4, %r1, %r2, %r3;
    add.rn.f32.f16 %r2, %rs1, %r1;           of sm_100 and later: an f16 and an f32, the result is an f32

Values are widened to float32, where add, sub and mul round like in the narrow format (24 >= 2 * 11 + 2 bits), and
fma to float64 rounded to odd.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.approximate import FUNCTIONS
from deuteron.emulator.instructions.elementwise import elementwise
from deuteron.emulator.instructions.floating import ROUNDINGS, maximum, minimum, propagating, rounded, saturate
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.numerics import fma_to_odd, from_bf16, odd_float32, to_bf16

RULES = Rules()

# The registers hold bits: how to read an operand of each type.
_RAW = {"f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}


def widen(bits: np.ndarray, type: str) -> np.ndarray:
    """Bits to float32, [..., 2] for a pair (the low half first)."""
    bits = np.asarray(bits)
    if type.endswith("x2"):
        bits = np.ascontiguousarray(bits)[..., None].view(np.uint16)
    return from_bf16(bits) if type.startswith("bf16") else bits.view(np.float16).astype(np.float32)


def narrow(values: np.ndarray, type: str) -> np.ndarray:
    """float32, or float64 rounded to odd, to bits; the inverse of `widen`."""
    if type.startswith("bf16"):
        bits = to_bf16(odd_float32(values) if values.dtype == np.float64 else values)
    else:
        bits = np.where(np.isnan(values), np.uint16(0x7FFF), values.astype(np.float16).view(np.uint16))
    return np.ascontiguousarray(bits).view(np.uint32)[..., 0] if type.endswith("x2") else bits


def in_float32(function: Callable, type: str) -> Callable:
    return lambda *arguments: narrow(function(*[widen(x, type) for x in arguments]), type)


def flush_bits(bits: np.ndarray, type: str) -> np.ndarray:
    """Subnormal numbers to zeros of their sign."""
    bits = np.ascontiguousarray(bits)
    halves, exponent = bits.view(np.uint16), np.uint16(0x7F80 if type.startswith("bf16") else 0x7C00)
    return np.where(halves & exponent, halves, halves & np.uint16(0x8000)).view(bits.dtype)


def _with_flush(function: Callable, type: str) -> Callable:
    return lambda *arguments: flush_bits(function(*[flush_bits(x, type) for x in arguments]), type)


def _make(d: Decoding, function: Callable, type: str, count: int) -> Callable:
    flushes = d.flag("ftz")
    if d.flag("sat"):
        function = saturate(function)
    if d.flag("relu"):
        inner = function
        function = lambda *arguments: np.maximum(inner(*arguments), 0)  # noqa: E731
    if type.endswith("x2"):
        d.moves_parts(4)
    on_bits = in_float32(function, type)
    if flushes:
        on_bits = _with_flush(on_bits, type)
    return elementwise(d, on_bits, _RAW[type], *[_RAW[type]] * count)


_BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply}


@RULES.pure(*_BINARY, kind="half")
def decode_binary(d: Decoding):
    type, name = d.modifiers.pop(), d.instruction.opcode.split(".")[0]
    if d.flag("f32"):
        return _make_mixed(d, name, type, 2)
    d.choice("rn", default="rn")
    return _make(d, _BINARY[name], type, 2)


@RULES.pure("fma", kind="half")
def decode_fma(d: Decoding):
    type = d.modifiers.pop()
    if d.flag("f32"):
        return _make_mixed(d, "fma", type, 3)
    d.choice("rn")
    return _make(d, fma_to_odd, type, 3)


def _make_mixed(d: Decoding, name: str, type: str, count: int) -> Callable:
    """In float32, of operands in 16 bits but for the last."""
    function = rounded(name, d.choice(*ROUNDINGS, default="rn"))
    if d.flag("sat"):
        function = saturate(function)

    def apply(*arguments: np.ndarray) -> np.ndarray:
        *narrow, last = arguments
        return function(*[widen(x, type) for x in narrow], last)

    return elementwise(d, apply, "f32", *[_RAW[type]] * (count - 1), "f32")


@RULES.pure("min", "max", kind="half")
def decode_min_max(d: Decoding):
    type = d.modifiers.pop()
    function = minimum if d.instruction.opcode.startswith("min") else maximum
    return _make(d, propagating(function) if d.flag("NaN") else function, type, 2)


@RULES.pure("neg", "abs", kind="half")
def decode_sign(d: Decoding):
    """On the bits, so that the payload of a NaN stays."""
    type = d.modifiers.pop()
    raw, flushes = _RAW[type], d.flag("ftz")
    if type.endswith("x2"):
        d.moves_parts(4)
    sign = np.uint32(0x80008000) if raw == "b32" else np.uint16(0x8000)
    change = (lambda a: a ^ sign) if d.instruction.opcode.startswith("neg") else lambda a: a & ~sign
    return elementwise(d, _with_flush(change, type) if flushes else change, raw, raw)


@RULES.pure("ex2", "tanh", kind="half")
def decode_function(d: Decoding):
    type = d.modifiers.pop()
    d.choice("approx")
    return _make(d, FUNCTIONS[d.instruction.opcode.split(".")[0]], type, 1)
