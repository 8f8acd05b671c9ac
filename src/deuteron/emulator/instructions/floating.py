"""float32 and float64 arithmetic: add, sub, mul, fma, mad, div, neg, abs, min, max, sqrt, rcp, rsqrt, copysign, testp.

    fma.rn.ftz.f32 %r4, %r1, %r2, %r3;       one rounding; .ftz flushes subnormal inputs and results
    fma.rn.f32x2 %rd4, %rd1, %rd2, %rd3;     of sm_100 and later: two float32 in 64 bits

Approximate forms (`div.full`, `rcp.approx`) are computed exactly rounded, which is within their documented error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.elementwise import elementwise
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.numerics import flush, fma
from deuteron.interpreter.numerics.extrema import larger, smaller
from deuteron.interpreter.numerics.rounding import ROUNDED

RULES = Rules()
ROUNDINGS = ("rn", "rz", "rm", "rp")


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smaller; of a NaN and a number the number; -0 is smaller than +0."""
    result = smaller(a, b)
    is_zero = (a == 0) & (b == 0)
    return np.where(is_zero & np.signbit(a), a, np.where(is_zero, b, result)) if is_zero.any() else result


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = larger(a, b)
    is_zero = (a == 0) & (b == 0)
    return np.where(is_zero & np.signbit(a), b, np.where(is_zero, a, result)) if is_zero.any() else result


def propagating(function: Callable) -> Callable:
    """`min.NaN`: a NaN among the arguments gives the canonical NaN."""

    def apply(a, b):
        return np.where(np.isnan(a) | np.isnan(b), a.dtype.type(np.nan), function(a, b))

    return apply


def with_flush(function: Callable) -> Callable:
    return lambda *arguments: flush(function(*[flush(x) for x in arguments]))


def saturate(function: Callable) -> Callable:
    """`.sat`: to [0, 1], NaN and -0 to +0."""
    return lambda *arguments: np.clip(np.nan_to_num(function(*arguments), nan=0.0), 0, 1) + np.float32(0)


def _make(d: Decoding, type: str, function: Callable, count: int) -> Callable:
    if d.flag("ftz"):
        function = with_flush(function)
    if d.flag("sat"):
        function = saturate(function)
    if type == "f32x2":
        d.moves_parts(8)
        return elementwise(d, in_pairs(function), "b64", *["b64"] * count)
    return elementwise(d, function, type, *[type] * count)


def in_pairs(function: Callable) -> Callable:
    """A function of float32, of the two in 64 bits each."""

    def apply(*arguments: np.ndarray) -> np.ndarray:
        values = function(*[np.ascontiguousarray(bits)[..., None].view(np.float32) for bits in arguments])
        return np.ascontiguousarray(values).view(np.uint64)[..., 0]

    return apply


def rounded(name: str, mode: str) -> Callable:
    """An operation in a rounding."""
    return _NEAREST[name] if mode == "rn" else ROUNDED[f"{name}_{_MODES[mode]}"]


_MODES = {"rz": "rz", "rm": "rd", "rp": "ru"}
_NEAREST: dict[str, Callable] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "fma": fma, "div": np.divide}
_NEAREST["sqrt"] = np.sqrt
_NEAREST["rcp"] = lambda a: a.dtype.type(1) / a


@RULES.pure("add", "sub", "mul", kind="float")
def decode_add(d: Decoding):
    name = d.instruction.opcode.split(".")[0]
    return _make(d, d.type(), rounded(name, d.choice(*ROUNDINGS, default="rn")), 2)


@RULES.pure("fma", "mad", kind="float")
def decode_fma(d: Decoding):
    return _make(d, d.type(), rounded("fma", d.choice(*ROUNDINGS)), 3)


@RULES.pure("div", kind="float")
def decode_div(d: Decoding):
    type = d.type()
    mode = d.choice(*ROUNDINGS, "full", "approx")
    if mode == "approx":
        return _make(d, type, _divide_approximately, 2)
    return _make(d, type, rounded("div", "rn" if mode == "full" else mode), 2)


def _divide_approximately(a, b):
    """`div.approx` gives 0 where the divisor is between 2^126 and 2^128."""
    large = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b) & np.isfinite(a)
    return np.where(large, np.copysign(np.float32(0), a * np.sign(b)), a / b)


_UNARY: dict[str, Callable] = {"neg": np.negative, "abs": np.abs}
_UNARY["rsqrt"] = lambda a: (1 / np.sqrt(np.asarray(a, np.float64))).astype(a.dtype)


@RULES.pure(*_UNARY, kind="float")
def decode_unary(d: Decoding):
    type = d.type()
    d.choice("rn", "approx", default="none")
    return _make(d, type, _UNARY[d.instruction.opcode.split(".")[0]], 1)


@RULES.pure("sqrt", "rcp", kind="float")
def decode_root(d: Decoding):
    type = d.type()
    mode = d.choice(*ROUNDINGS, "approx", default="rn")
    return _make(d, type, rounded(d.instruction.opcode.split(".")[0], "rn" if mode == "approx" else mode), 1)


@RULES.pure("min", "max", kind="float")
def decode_min_max(d: Decoding):
    type = d.type()
    function = minimum if d.instruction.opcode.startswith("min") else maximum
    if d.flag("NaN"):
        function = propagating(function)
    if d.flag("abs"):
        function = _of_magnitudes(function)
    if d.has(3):
        pair = function
        return _make(d, type, lambda a, b, c: pair(pair(a, b), c), 3)
    return _make(d, type, function, 2)


def _of_magnitudes(function: Callable) -> Callable:
    return lambda a, b: function(np.abs(a), np.abs(b))


@RULES.pure("copysign", kind="float")
def decode_copysign(d: Decoding):
    """The magnitude of the second source with the sign of the first."""
    type = d.type()
    return elementwise(d, lambda a, b: np.copysign(b, a), type, type, type)


_TESTS: dict[str, Callable] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= np.finfo(a.dtype).tiny) | (a == 0)),
    "subnormal": lambda a: (np.abs(a) < np.finfo(a.dtype).tiny) & (a != 0),
}


@RULES.pure("testp", kind="float")
def decode_testp(d: Decoding):
    type = d.type()
    return elementwise(d, _TESTS[d.choice(*_TESTS)], "pred", type)
