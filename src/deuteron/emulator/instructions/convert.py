"""cvt: between integers, floats, halves, bf16, floats of eight, six and four bits and tf32, with every rounding.

cvt.rzi.s32.f32 %r2, %r1;                          float to integer: saturates, NaN gives 0
cvt.rn.bf16x2.f32 %r3, %r1, %r2;                   the first source is the upper half
cvt.rn.satfinite.e4m3x2.f32 %rs1, %r1, %r2;
cvt.rn.f16x2.e2m1x2 %r4, %b1;                      two of four bits in a byte
cvt.rp.satfinite.ue8m0x2.f32 %rs2, %r1, %r2;       two powers of two, as exponents
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.elementwise import elementwise
from deuteron.emulator.instructions.half import narrow, widen
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.numerics import (
    decode_small,
    directed,
    encode_small,
    flush,
    from_bf16,
    odd_float32,
    to_bf16,
    to_tf32,
)
from deuteron.emulator.types import TYPES

RULES = Rules()

_FLOATS = ("f16", "bf16", "f32", "f64")
_TO_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
_SCALES = "ue8m0x2"  # pairs of powers of two
# Pairs of floats of eight bits and fewer, by the register that holds one; of others the bits of the largest number.
_SMALL_PAIRS = {"e4m3x2": "b16", "e5m2x2": "b16", "e2m3x2": "b16", "e3m2x2": "b16", "e2m1x2": "b8"}
_LARGEST = {"f16x2": 0x7BFF, "bf16x2": 0x7F7F}
_ROUNDINGS = ("rn", "rz", "rm", "rp", "rna")


@RULES.pure("cvt")
def decode_cvt(d: Decoding):
    source, result = d.modifiers.pop(), d.modifiers.pop()
    if result.endswith("x2") or source.endswith("x2"):
        return _decode_pair(d, result, source)
    if result == "tf32":
        return _decode_tf32(d)
    if source in _FLOATS:
        return _decode_to_integer(d, result, source) if result not in _FLOATS else _decode_float(d, result, source)
    return _decode_from_integer(d, result, source)


def _read_float(type: str) -> Callable:
    """Bits to float64, exactly."""
    if type == "bf16":
        return lambda bits: from_bf16(bits).astype(np.float64)
    return lambda values: np.asarray(values, np.float64)


def _write_float(type: str, mode: str) -> Callable:
    """float64 to values of the type (bf16: bits)."""
    if type == "bf16":
        if mode in ("rm", "rp"):
            raise KeyError(mode)
        return lambda exact: to_bf16(odd_float32(exact), mode)
    return lambda exact: directed(exact, TYPES[type], mode)


def _decode_float(d: Decoding, result: str, source: str):
    integral = d.choice(*_TO_INTEGRAL, default="none")
    mode = d.choice(*_ROUNDINGS, default="rn")
    ftz, sat, relu = d.flag("ftz"), d.flag("sat"), d.flag("relu")
    read, write = _read_float(source), _write_float(result, mode)

    def convert(values):
        exact = read(values)
        if ftz and source == "f32":
            exact = flush(values).astype(np.float64)
        if integral != "none":
            exact = _TO_INTEGRAL[integral](exact)
        if sat:
            exact = np.clip(np.nan_to_num(exact, nan=0.0), 0, 1)
        if relu:
            exact = np.where(exact < 0, 0.0, exact)
        made = write(exact)
        return flush(made) if ftz and result == "f32" else made

    return elementwise(d, convert, result, source)


def _decode_to_integer(d: Decoding, result: str, source: str):
    rounding = _TO_INTEGRAL[d.choice(*_TO_INTEGRAL)]
    ftz = d.flag("ftz")
    d.flag("sat")
    read, type = _read_float(source), TYPES[result]
    of_nan = 1 << 8 * type().itemsize - 1 if source == "f64" or type().itemsize == 8 else 0

    def convert(values):
        exact = read(flush(values) if ftz else values)
        made = saturate_to_integer(rounding(exact), type)
        return np.where(np.isnan(exact), np.uint64(of_nan).astype(type), made)

    return elementwise(d, convert, result, source)


def saturate_to_integer(values: np.ndarray, type: type) -> np.ndarray:
    """Integral float64 to an integer type; out of range goes to the nearest end, NaN to 0."""
    limits = np.iinfo(type)
    inside = (values > float(limits.min)) & (values < float(limits.max))
    result = np.where(inside, values, 0.0).astype(type)
    result = np.where(values >= float(limits.max), type(limits.max), result)
    return np.where(values <= float(limits.min), type(limits.min), result)


def _decode_from_integer(d: Decoding, result: str, source: str):
    if result in _FLOATS:
        mode = d.choice(*_ROUNDINGS)
        if mode != "rn" and source.endswith("64"):
            raise d.error("directed rounding of 64-bit integers is not known")
        if mode == "rn" and result in ("f32", "f64"):
            return elementwise(d, lambda a: a.astype(TYPES[result]), result, source)
        write = _write_float(result, mode)
        return elementwise(d, lambda a: write(a.astype(np.float64)), result, source)
    if d.flag("sat"):
        limits = np.iinfo(TYPES[result])
        own = np.iinfo(TYPES[source])
        low, high = max(limits.min, own.min), min(limits.max, own.max)
        return elementwise(d, lambda a: np.clip(a, low, high).astype(TYPES[result]), result, source)
    if TYPES[result]().itemsize < TYPES[source]().itemsize:
        d.narrows_parts(result, source)
    return elementwise(d, lambda a: a.astype(TYPES[result]), result, source)


def _decode_tf32(d: Decoding):
    mode = d.choice(*_ROUNDINGS)
    is_finite, relu = d.flag("satfinite"), d.flag("relu")

    def convert(a):
        bits = to_tf32(_relu(a, relu), mode)
        return np.where(is_finite & ~np.isnan(a), _nearer_to_zero(bits, 0x7F7FE000, 31), bits)

    return elementwise(d, convert, "b32", "f32")


def _decode_pair(d: Decoding, result: str, source: str):
    """Two floats in a register: of two operands the first is the upper one."""
    mode = d.choice(*_ROUNDINGS, default="rn")
    is_finite, relu = d.flag("satfinite"), d.flag("relu")
    if _SCALES in (result, source):
        return _decode_scales(d, result, source, mode, is_finite)
    if source in _SMALL_PAIRS and result == "f16x2":
        return elementwise(d, lambda a: _from_small(a, source, relu), "b32", _SMALL_PAIRS[source])
    if result in _SMALL_PAIRS and source == "f16x2" and is_finite:
        return elementwise(d, lambda a: _to_small(_relu(widen(a, source), relu), result), _SMALL_PAIRS[result], "b32")
    if source != "f32" or not (is_finite or result not in _SMALL_PAIRS):
        raise d.error(f"no conversion from {source} to {result}")
    write, high, low = d.destination(0, _SMALL_PAIRS.get(result, "b32")), d.source(1, "f32"), d.source(2, "f32")
    pack = _pair_packer(d, result, mode, is_finite)
    return lambda group: write(group, pack(_relu(np.stack([low(group), high(group)], 1), relu)))


def _decode_scales(d: Decoding, result: str, source: str, mode: str, is_finite: bool):
    """Exponents of float32: 255 is NaN, 0 the least power, 2**-127."""
    if source == _SCALES and result == "bf16x2":
        return elementwise(d, _from_scales, "b32", "b16")
    if source not in ("f32", "bf16x2") or mode not in ("rz", "rp"):
        raise d.error(f"no conversion from {source} to {result}")
    if source == "bf16x2":
        return elementwise(d, lambda a: _to_scales(widen(a, source), mode, is_finite), "b16", "b32")
    write, high, low = d.destination(0, "b16"), d.source(1, "f32"), d.source(2, "f32")
    return lambda group: write(group, _to_scales(np.stack([low(group), high(group)], 1), mode, is_finite))


def _to_scales(pair: np.ndarray, mode: str, is_finite: bool) -> np.ndarray:
    """Float32 pairs [threads, 2] to a register of 16 bits; the sign is lost."""
    size = np.abs(np.ascontiguousarray(pair, np.float32))
    fraction, exponent = np.frexp(size.astype(np.float64))
    power = exponent - (fraction == 0.5) if mode == "rp" else exponent - 1
    codes = np.where(size == 0, 0, np.clip(power + 127, 0, 254 if is_finite else 255))
    codes = np.where(np.isinf(size), 254 if is_finite else 255, codes)
    return np.where(np.isnan(size), 255, codes).astype(np.uint8).view(np.uint16)[:, 0]


def _from_scales(bits: np.ndarray) -> np.ndarray:
    codes = np.ascontiguousarray(bits)[:, None].view(np.uint8)
    powers = np.where(codes == 0, 0x0040, np.where(codes == 255, 0x7FFF, codes.astype(np.uint16) << 7))
    return powers.astype(np.uint16).view(np.uint32)[:, 0]


def _pair_packer(d: Decoding, result: str, mode: str, is_finite: bool) -> Callable:
    """Float32 pairs [threads, 2] (low half first) to one register."""
    if result in _SMALL_PAIRS:
        return lambda pair: _to_small(pair, result)
    if result not in _LARGEST:
        raise d.error(f"no conversion from f32 to {result}")

    def halves(pair: np.ndarray) -> np.ndarray:
        if result == "bf16x2":
            bits = to_bf16(pair, mode)
        else:
            bits = narrow(directed(pair.astype(np.float64), np.float16, mode), "f16")
        return np.where(is_finite & ~np.isnan(pair), _nearer_to_zero(bits, _LARGEST[result], 15), bits)

    return lambda pair: np.ascontiguousarray(halves(pair)).view(np.uint32)[:, 0]


def _nearer_to_zero(bits: np.ndarray, largest: int, sign_bit: int) -> np.ndarray:
    """No number is larger than that of these bits; `sign_bit` is the place of the sign."""
    magnitude = bits & bits.dtype.type((1 << sign_bit) - 1)
    return np.minimum(magnitude, bits.dtype.type(largest)) | (bits ^ magnitude)


def _relu(values: np.ndarray, relu: bool) -> np.ndarray:
    return np.maximum(values, np.float32(0)) if relu else values


def _to_small(pair: np.ndarray, format: str) -> np.ndarray:
    """Float32 pairs [threads, 2] to a register of 16 bits, or of 8 for floats of four."""
    codes = np.ascontiguousarray(encode_small(pair, format[:4]))
    return codes[:, 0] | codes[:, 1] << 4 if format == "e2m1x2" else codes.view(np.uint16)[:, 0]


def _from_small(bits: np.ndarray, format: str, relu: bool) -> np.ndarray:
    if format == "e2m1x2":
        codes = np.stack([bits & 15, bits >> 4], 1)
    else:
        codes = np.ascontiguousarray(bits)[:, None].view(np.uint8)
    return narrow(_relu(decode_small(codes, format[:4]), relu), "f16x2")
