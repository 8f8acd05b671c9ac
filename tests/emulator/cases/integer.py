"""Integer arithmetic, bits and comparisons; the expected values come from Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from emulator.case import Case, elementwise

COUNT = 128


def values(rng: np.random.Generator, dtype: type) -> np.ndarray:
    """Random, with the extremes, zeros and small numbers among them."""
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max, COUNT, dtype, endpoint=True)
    x[:32] = rng.integers(0, 5, 32).astype(dtype)
    x[32:40] = limits.min
    x[40:48] = limits.max
    return rng.permutation(x)


def _wrap(value: int, dtype: type) -> int:
    limits = np.iinfo(dtype)
    return (value - limits.min) % (1 << limits.bits) + limits.min


def scalar_case(name: str, lines: str, dtypes: dict[str, type], result: type, function: Callable[..., int]) -> Case:
    """A case whose expected value is a function of Python integers, wrapped to the result type."""

    def make(rng: np.random.Generator):
        inputs = {key: values(rng, dtype) for key, dtype in dtypes.items()}
        rows = zip(*(x.tolist() for x in inputs.values()), strict=True)
        return inputs, np.array([_wrap(int(function(*row)), result) for row in rows], result)

    return elementwise(name, lines, result, make)


def _truncate(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _field(a: int, position: int, length: int, width: int, is_signed: bool) -> int:
    """`bfe` as the PTX manual writes it."""
    position, length, top = position & 255, length & 255, width - 1
    sign = 0 if not is_signed or length == 0 else a >> min(position + length - 1, top) & 1
    bits = 0
    for i in range(width):
        bit = a >> (position + i) & 1 if i < length and position + i <= top else sign
        bits |= bit << i
    return bits


def _prmt(a: int, b: int, selector: int) -> int:
    pool = (a | b << 32).to_bytes(8, "little")
    result = 0
    for i in range(4):
        nibble = selector >> 4 * i & 15
        byte = pool[nibble & 7]
        byte = (255 if byte & 128 else 0) if nibble & 8 else byte
        result |= byte << 8 * i
    return result


def _lop3(a: int, b: int, c: int) -> int:
    return sum((0x96 >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i for i in range(32))


_S32, _U32, _S64, _U64 = np.int32, np.uint32, np.int64, np.uint64
_TYPES = {"s16": np.int16, "u16": np.uint16, "s32": _S32, "u32": _U32, "s64": _S64, "u64": _U64}
_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


def _upper_half(width: int) -> Callable[[int, int], int]:
    return lambda a, b: a * b >> width


def _two(type: str, name: str, function: Callable[[int, int], int]) -> Case:
    dtype = _TYPES[type]
    return scalar_case(f"{name}.{type}", f"{name}.{type} d, a, b;", {"a": dtype, "b": dtype}, dtype, function)


def _two_of_a_pair(name: str, function: Callable[[int, int], int]) -> Case:
    """The high half of the result; the low half is of the operands the other way round."""
    lines = f"mov.b32 t0, {{b, a}}; mov.b32 t1, {{a, b}}; {name} t2, t0, t1; mov.b32 {{byte, d}}, t2;"
    return scalar_case(name, lines, dict.fromkeys("ab", np.int16), np.int16, function)


def _division(type: str) -> list[Case]:
    dtype = _TYPES[type]

    def make(rng: np.random.Generator, is_remainder: bool):
        a, b = values(rng, dtype), values(rng, dtype)
        b[b == 0] = 3
        a[(a == np.iinfo(dtype).min) & (b.astype(object) == -1)] = 7
        rows = list(zip(a.tolist(), b.tolist(), strict=True))
        quotients = [x - y * _truncate(x, y) if is_remainder else _truncate(x, y) for x, y in rows]
        return {"a": a, "b": b}, np.array(quotients, dtype)

    return [
        elementwise(f"div.{type}", f"div.{type} d, a, b;", dtype, lambda rng: make(rng, False)),
        elementwise(f"rem.{type}", f"rem.{type} d, a, b;", dtype, lambda rng: make(rng, True)),
    ]


CASES = [
    *[_two(type, name, function) for type in _TYPES for name, function in _BINARY.items()],
    *[case for type in _TYPES for case in _division(type)],
    *[_two(type, "mul.hi", _upper_half(8 * dtype().itemsize)) for type, dtype in _TYPES.items()],
    scalar_case("mul.wide.s32", "mul.wide.s32 d, a, b;", {"a": _S32, "b": _S32}, _S64, lambda a, b: a * b),
    scalar_case("mul.wide.u16", "mul.wide.u16 d, a, b;", {"a": np.uint16, "b": np.uint16}, _U32, lambda a, b: a * b),
    scalar_case(
        "mad.wide.u32",
        "mad.wide.u32 d, a, b, c;",
        {"a": _U32, "b": _U32, "c": _U64},
        _U64,
        lambda a, b, c: a * b + c,
    ),
    scalar_case(
        "mad.lo.s32", "mad.lo.s32 d, a, b, c;", {"a": _S32, "b": _S32, "c": _S32}, _S32, lambda a, b, c: a * b + c
    ),
    scalar_case(
        "add.sat.s32",
        "add.sat.s32 d, a, b;",
        {"a": _S32, "b": _S32},
        _S32,
        lambda a, b: max(min(a + b, 2**31 - 1), -(2**31)),
    ),
    _two("s32", "min.relu", lambda a, b: max(min(a, b), 0)),
    _two("s32", "max.relu", lambda a, b: max(a, b, 0)),
    _two_of_a_pair("min.s16x2", min),
    _two_of_a_pair("max.relu.s16x2", lambda a, b: max(a, b, 0)),
    scalar_case("neg.s32", "neg.s32 d, a;", {"a": _S32}, _S32, lambda a: -a),
    scalar_case("abs.s64", "abs.s64 d, a;", {"a": _S64}, _S64, abs),
    scalar_case("sad.u32", "sad.u32 d, a, b, c;", dict.fromkeys("abc", _U32), _U32, lambda a, b, c: abs(a - b) + c),
    scalar_case(
        "mul24.lo.u32",
        "mul24.lo.u32 d, a, b;",
        {"a": _U32, "b": _U32},
        _U32,
        lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    ),
    scalar_case("not.b64", "not.b64 d, a;", {"a": _U64}, _U64, lambda a: ~a),
    scalar_case("xor.b32", "xor.b32 d, a, b;", {"a": _U32, "b": _U32}, _U32, lambda a, b: a ^ b),
    scalar_case("shl.b32", "shl.b32 d, a, b;", {"a": _U32, "b": _U32}, _U32, lambda a, b: a << b if b < 32 else 0),
    scalar_case("shr.u64", "shr.u64 d, a, b;", {"a": _U64, "b": _U32}, _U64, lambda a, b: a >> b),
    scalar_case("shr.s32", "shr.s32 d, a, b;", {"a": _S32, "b": _U32}, _S32, lambda a, b: a >> min(b, 31)),
    scalar_case(
        "shf.l.wrap",
        "shf.l.wrap.b32 d, a, b, c;",
        dict.fromkeys("abc", _U32),
        _U32,
        lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32,
    ),
    scalar_case(
        "shf.r.clamp",
        "shf.r.clamp.b32 d, a, b, c;",
        dict.fromkeys("abc", _U32),
        _U32,
        lambda a, b, c: (b << 32 | a) >> min(c, 32),
    ),
    scalar_case(
        "bfe.u32", "bfe.u32 d, a, b, c;", dict.fromkeys("abc", _U32), _U32, lambda a, b, c: _field(a, b, c, 32, False)
    ),
    scalar_case(
        "bfe.s64",
        "and.b32 t0, b, 31; and.b32 t1, c, 31; bfe.s64 d, a, t0, t1;",
        {"a": _S64, "b": _U32, "c": _U32},
        _S64,
        lambda a, b, c: _field(a, b & 31, c & 31, 64, True),
    ),
    scalar_case(
        "bfi.b32",
        "and.b32 t0, c, 31; bfi.b32 d, a, b, t0, 9;",
        dict.fromkeys("abc", _U32),
        _U32,
        lambda a, b, c: b & ~(511 << (c & 31)) | ((a & 511) << (c & 31)),
    ),
    scalar_case("popc.b64", "popc.b64 d, a;", {"a": _U64}, _U32, lambda a: a.bit_count()),
    scalar_case("clz.b32", "clz.b32 d, a;", {"a": _U32}, _U32, lambda a: 32 - a.bit_length()),
    scalar_case("bfind.u32", "bfind.u32 d, a;", {"a": _U32}, _U32, lambda a: a.bit_length() - 1),
    scalar_case("brev.b32", "brev.b32 d, a;", {"a": _U32}, _U32, lambda a: int(f"{a:032b}"[::-1], 2)),
    scalar_case("prmt.b32", "prmt.b32 d, a, b, c;", dict.fromkeys("abc", _U32), _U32, _prmt),
    scalar_case("lop3.b32", "lop3.b32 d, a, b, c, 0x96;", dict.fromkeys("abc", _U32), _U32, _lop3),
    scalar_case("cvt.s64.s32", "cvt.s64.s32 d, a;", {"a": _S32}, _S64, lambda a: a),
    scalar_case("cvt.u64.u32", "cvt.u64.u32 d, a;", {"a": _U32}, _U64, lambda a: a),
    scalar_case("cvt.s8", "cvt.s32.s8 d, a;", {"a": _S32}, _S32, lambda a: (a + 128) % 256 - 128),
    scalar_case("cvt.sat.u8", "cvt.sat.u8.s32 t0, a; mov.b32 d, t0;", {"a": _S32}, _U32, lambda a: min(max(a, 0), 255)),
    scalar_case(
        "selp",
        "setp.lt.s32 p, a, b; setp.gt.or.u32 q, b, c, p; selp.b32 d, a, c, q;",
        dict.fromkeys("abc", _S32),
        _S32,
        lambda a, b, c: a if a < b or b % 2**32 > c % 2**32 else c,
    ),
    scalar_case("set.u32", "set.ge.u32.s32 d, a, b;", {"a": _S32, "b": _S32}, _U32, lambda a, b: -(a >= b)),
    scalar_case(
        "guard",
        "mov.b32 d, 5; setp.eq.s32 p, a, b; @!p add.s32 d, a, 1;",
        {"a": _S32, "b": _S32},
        _S32,
        lambda a, b: 5 if a == b else a + 1,
    ),
    scalar_case(
        "add.cc",
        "mov.b64 {t0, t1}, a; mov.b64 {t2, t3}, b; add.cc.u32 t0, t0, t2; addc.u32 t1, t1, t3; mov.b64 d, {t0, t1};",
        {"a": _U64, "b": _U64},
        _U64,
        lambda a, b: a + b,
    ),
    scalar_case(
        "sub.cc",
        "mov.b64 {t0, t1}, a; mov.b64 {t2, t3}, b; sub.cc.u32 t0, t0, t2; subc.u32 t1, t1, t3; mov.b64 d, {t0, t1};",
        {"a": _U64, "b": _U64},
        _U64,
        lambda a, b: a - b,
    ),
    scalar_case(
        "mov.pack",
        "mov.b64 {t0, t1}, a; mov.b64 d, {t1, t0};",
        {"a": _U64},
        _U64,
        lambda a: a >> 32 | (a & 0xFFFFFFFF) << 32,
    ),
]
