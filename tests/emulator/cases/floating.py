"""float32, float64, halves and conversions; the expected values are rounded from exact rational arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
from emulator.case import Case, elementwise

from deuteron.emulator.numerics import fma
from deuteron.interpreter.numerics.rounding import ROUNDED

COUNT = 256
_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, -1e-42, 1.5e-45, 3.4e38, -3.4e38, 65504.0, 6e-8]


def floats(rng: np.random.Generator, dtype: type = np.float32, special: bool = True) -> np.ndarray:
    """Random over many magnitudes, with zeros, infinities, NaN and subnormals among them."""
    reach = 3 if dtype == np.float16 else 12
    x = (rng.standard_normal(COUNT) * 2.0 ** rng.integers(-reach, reach, COUNT)).astype(dtype)
    if special:
        with np.errstate(over="ignore"):
            x[: len(_SPECIAL)] = np.array(_SPECIAL).astype(dtype)
        x[-64:] = rng.choice([0.0, -0.0], 64)
    return rng.permutation(x)


def round_exactly(value: Fraction, mantissa: int, min_exponent: int, mode: str = "rn") -> float:
    """A rational rounded to a binary format, as a float."""
    if value == 0:
        return 0.0
    exponent = max(math.frexp(abs(float(value)) or 5e-324)[1] - 1, min_exponent)
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    quantum = Fraction(2) ** (exponent - mantissa)
    scaled = value / quantum
    whole = {"rn": round, "rz": math.trunc, "rm": math.floor, "rp": math.ceil}[mode](scaled)
    return math.copysign(float(abs(whole) * quantum), value)


_FORMATS = {np.float32: (23, -126), np.float16: (10, -14)}


def exact_case(
    name: str, lines: str, count: int, function: Callable[..., Fraction], mode: str, dtype=np.float32
) -> Case:
    """Finite inputs of moderate magnitude; one rounding of the exact result."""

    def make(rng: np.random.Generator):
        inputs = {key: floats(rng, dtype, special=False) for key in "abc"[:count]}
        near = rng.integers(0, COUNT, 64)
        if count == 3:
            inputs["c"][near] = (-inputs["a"][near].astype(np.float64) * inputs["b"][near]).astype(dtype)
        rows = zip(*(x.tolist() for x in inputs.values()), strict=True)
        expected = [round_exactly(function(*map(Fraction, row)), *_FORMATS[dtype], mode) for row in rows]
        return inputs, np.array(expected).astype(dtype)

    return elementwise(name, lines, dtype, make)


def numpy_case(name: str, lines: str, function: Callable, dtypes: dict[str, type], result: type, **options) -> Case:
    def make(rng: np.random.Generator):
        inputs = {key: floats(rng, dtype) for key, dtype in dtypes.items()}
        with np.errstate(all="ignore"):
            return inputs, function(*inputs.values())

    return elementwise(name, lines, result, make, **options)


def _f32(name: str, lines: str, function: Callable, count: int = 1, **options) -> Case:
    return numpy_case(name, lines, function, dict.fromkeys("abc"[:count], np.float32), np.float32, **options)


def _flush(x: np.ndarray) -> np.ndarray:
    smallest = {"float32": 2.0**-126, "float64": 2.0**-1022}[x.dtype.name]
    return np.where(np.abs(x) < smallest, np.copysign(x.dtype.type(0), x), x)


def _to_int(x: np.ndarray, low: int, high: int, round: Callable) -> np.ndarray:
    clipped = np.clip(np.nan_to_num(round(x.astype(np.float64)), nan=0.0, posinf=2.0**80, neginf=-(2.0**80)), low, high)
    return np.array([min(max(int(v), low), high) for v in clipped])


def _finite_half(x: np.ndarray) -> np.ndarray:
    """float32 to bits of f16, no larger than the largest number."""
    halves = np.clip(x, -65504, 65504).astype(np.float16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), halves.view(np.uint16))


def _bf16(x: np.ndarray) -> np.ndarray:
    """float32 to bits of bf16 with ties to even, by way of exact rationals."""
    result = []
    for value in x.tolist():
        if not math.isfinite(value):
            bits = 0x7FFF if math.isnan(value) else 0x7F80 | (value < 0) << 15
        else:
            rounded = round_exactly(Fraction(value), 7, -126)
            with np.errstate(over="ignore"):
                bits = int(np.float32(rounded).view(np.uint32)) >> 16
            bits |= (math.copysign(1, value) < 0) << 15
        result.append(bits)
    return np.array(result, np.uint16)


def _special_pairs(function: Callable) -> Callable:
    """min or max of numbers; of a NaN and a number the number."""

    def apply(a, b):
        result = np.where(np.isnan(a), b, np.where(np.isnan(b), a, function(a, b)))
        both_zero = (a == 0) & (b == 0)
        sign = np.signbit(a) & np.signbit(b) if function is np.maximum else np.signbit(a) | np.signbit(b)
        return np.where(both_zero, np.where(sign, -0.0, 0.0), result)

    return apply


def _nan_or_maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(a) | np.isnan(b), np.nan, _special_pairs(np.maximum)(a, b))


def _make_fma64(rng: np.random.Generator):
    a, b, c = (floats(rng, np.float64, special=False) for _ in range(3))
    c[:128] = -a[:128] * b[:128]
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return {"a": a, "b": b, "c": c}, np.array([float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in rows])


_FMA64 = elementwise("fma.f64", "fma.rn.f64 d, a, b, c;", np.float64, _make_fma64)
_R = np.float32
_MODES = ("rn", "rz", "rm", "rp")

CASES = [
    *[exact_case(f"add.{m}.f32", f"add.{m}.f32 d, a, b;", 2, lambda a, b: a + b, m) for m in _MODES],
    *[exact_case(f"mul.{m}.f32", f"mul.{m}.f32 d, a, b;", 2, lambda a, b: a * b, m) for m in _MODES],
    *[exact_case(f"fma.{m}.f32", f"fma.{m}.f32 d, a, b, c;", 3, lambda a, b, c: a * b + c, m) for m in _MODES],
    exact_case("div.rn.f32", "div.rn.f32 d, a, b;", 2, lambda a, b: a / b, "rn"),
    exact_case("add.f16", "add.rn.f16 d, a, b;", 2, lambda a, b: a + b, "rn", np.float16),
    exact_case("mul.f16", "mul.rn.f16 d, a, b;", 2, lambda a, b: a * b, "rn", np.float16),
    exact_case("fma.f16", "fma.rn.f16 d, a, b, c;", 3, lambda a, b, c: a * b + c, "rn", np.float16),
    _f32("sub.f32", "sub.rn.f32 d, a, b;", lambda a, b: a - b, 2),
    _f32("mul.ftz", "mul.ftz.f32 d, a, b;", lambda a, b: _flush(_flush(a) * _flush(b)), 2),
    _f32("add.sat", "add.sat.f32 d, a, b;", lambda a, b: np.clip(np.nan_to_num(a + b, nan=0.0), 0, 1) + _R(0), 2),
    _f32("min.f32", "min.f32 d, a, b;", _special_pairs(np.minimum), 2),
    _f32("max.f32", "max.f32 d, a, b;", _special_pairs(np.maximum), 2),
    _f32("max.NaN", "max.NaN.f32 d, a, b;", _nan_or_maximum, 2),
    _f32("neg.f32", "neg.f32 d, a;", np.negative),
    _f32("abs.f32", "abs.f32 d, a;", np.abs),
    _f32("copysign.f32", "copysign.f32 d, a, b;", lambda a, b: np.copysign(b, a), 2),
    _f32("sqrt.rn", "sqrt.rn.f32 d, a;", np.sqrt),
    _f32("rcp.rn", "rcp.rn.f32 d, a;", lambda a: _R(1) / a),
    _f32("rcp.approx", "rcp.approx.f32 d, a;", lambda a: _R(1) / a, gpu_tolerance=3e-7),
    numpy_case(
        "rcp.approx.f64",
        "rcp.approx.ftz.f64 d, a;",
        lambda a: _flush(1 / _flush(a)),
        {"a": np.float64},
        np.float64,
        gpu_tolerance=2e-6,
    ),
    _f32(
        "rsqrt.approx",
        "rsqrt.approx.f32 d, a;",
        lambda a: 1 / np.sqrt(a.astype("f8")),
        gpu_tolerance=4e-7,
        tolerance=1e-7,
    ),
    _f32("div.full", "div.full.f32 d, a, b;", lambda a, b: a / b, 2, gpu_tolerance=4e-7),
    _f32("ex2", "ex2.approx.f32 d, a;", lambda a: np.exp2(a.astype("f8")), tolerance=1e-7, gpu_tolerance=4e-7),
    _f32("lg2", "lg2.approx.f32 d, a;", lambda a: np.log2(a.astype("f8")), tolerance=1e-7, gpu_tolerance=1e-6),
    _f32("tanh", "tanh.approx.f32 d, a;", lambda a: np.tanh(a.astype("f8")), tolerance=1e-7, gpu_tolerance=1e-3),
    _f32("cvt.rni", "cvt.rni.f32.f32 d, a;", np.rint),
    _f32("cvt.rmi", "cvt.rmi.f32.f32 d, a;", np.floor),
    exact_case("fma.ftz", "fma.rn.ftz.f32 d, a, b, c;", 3, lambda a, b, c: a * b + c, "rn"),
    _FMA64,
    numpy_case("setp.lt", "setp.lt.f32 d, a, b;", np.less, dict.fromkeys("ab", _R), np.bool_),
    numpy_case("setp.neu", "setp.neu.f32 d, a, b;", np.not_equal, dict.fromkeys("ab", _R), np.bool_),
    numpy_case(
        "setp.num", "setp.num.f32 d, a, b;", lambda a, b: ~np.isnan(a) & ~np.isnan(b), dict.fromkeys("ab", _R), np.bool_
    ),
    numpy_case("testp.finite", "testp.finite.f32 d, a;", np.isfinite, {"a": _R}, np.bool_),
    numpy_case(
        "cvt.s32.rzi", "cvt.rzi.s32.f32 d, a;", lambda a: _to_int(a, -(2**31), 2**31 - 1, np.trunc), {"a": _R}, np.int32
    ),
    numpy_case(
        "cvt.u32.rni", "cvt.rni.u32.f32 d, a;", lambda a: _to_int(a, 0, 2**32 - 1, np.rint), {"a": _R}, np.uint32
    ),
    numpy_case("cvt.f16.rn", "cvt.rn.f16.f32 d, a;", lambda a: a.astype(np.float16), {"a": _R}, np.float16),
    numpy_case("cvt.f32.f16", "cvt.f32.f16 d, a;", lambda a: a.astype(_R), {"a": np.float16}, _R),
    numpy_case("cvt.f64.f32", "cvt.f64.f32 d, a;", lambda a: a.astype(np.float64), {"a": _R}, np.float64),
    numpy_case("cvt.f32.f64", "cvt.rn.f32.f64 d, a;", lambda a: a.astype(_R), {"a": np.float64}, _R),
    numpy_case("cvt.bf16", "cvt.rn.bf16.f32 d, a;", _bf16, {"a": _R}, np.uint16),
    numpy_case(
        "cvt.bf16x2",
        "cvt.rn.bf16x2.f32 d, a, b;",
        lambda a, b: _bf16(b).astype(np.uint32) | _bf16(a).astype(np.uint32) << np.uint32(16),
        dict.fromkeys("ab", _R),
        np.uint32,
    ),
    numpy_case(
        "cvt.satfinite.f16x2",
        "mul.f32 t0, a, b; cvt.rn.satfinite.f16x2.f32 d, t0, b;",
        lambda a, b: _finite_half(b).astype(np.uint32) | _finite_half(a * b).astype(np.uint32) << np.uint32(16),
        dict.fromkeys("ab", _R),
        np.uint32,
    ),
    numpy_case(
        "add.f16x2",
        "mov.b32 t0, {a, b}; mov.b32 t1, {b, b}; add.rn.f16x2 t2, t0, t1; mov.b32 {byte, d}, t2;",
        lambda a, b: b + b,
        dict.fromkeys("ab", np.float16),
        np.float16,
    ),
]

# Of sm_100 and later: no GPU that the others were compared with has them.
_MIXED = {"a": np.float16, "b": np.float16, "c": _R}
_TWO = "mov.b64 w0, {a, b}; mov.b64 w1, {b, a};"
LATER_CASES = [
    numpy_case("add.f32.f16", "add.rn.f32.f16 d, a, c;", lambda a, b, c: a.astype(_R) + c, _MIXED, _R),
    numpy_case("sub.f32.f16", "sub.f32.f16 d, a, c;", lambda a, b, c: a.astype(_R) - c, _MIXED, _R),
    numpy_case(
        "fma.f32.f16", "fma.rn.f32.f16 d, a, b, c;", lambda a, b, c: fma(*(x.astype(_R) for x in (a, b, c))), _MIXED, _R
    ),
    numpy_case(
        "add.f32.bf16",
        "add.rz.sat.f32.bf16 d, a, c;",
        lambda a, c: np.clip(np.nan_to_num(ROUNDED["add_rz"](a.astype(_R), c), nan=0.0), 0, 1) + _R(0),
        {"a": ml_dtypes.bfloat16, "c": _R},
        _R,
    ),
    _f32("fma.f32x2", _TWO + "fma.rn.f32x2 w0, w0, w1, w0; mov.b64 {t0, d}, w0;", lambda a, b: fma(b, a, b), 2),
    _f32("add.f32x2", _TWO + "add.rz.f32x2 w0, w0, w1; mov.b64 {d, t0}, w0;", ROUNDED["add_rz"], 2),
    _f32(
        "mul.ftz.f32x2",
        _TWO + "mul.rn.ftz.f32x2 w0, w0, w0; mov.b64 {t0, d}, w0;",
        lambda a, b: _flush(_flush(b) * _flush(b)),
        2,
    ),
]
