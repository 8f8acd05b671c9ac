"""Comparisons and selection: setp, set, selp, slct.

setp.lt.and.f32 %p1|%p2, %r1, %r2, %p3;      p1 = (a < b) and p3;  p2 = not (a < b) and p3
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.elementwise import elementwise
from deuteron.emulator.instructions.half import flush_bits, widen
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.numerics import flush

RULES = Rules()

_ORDERED: dict[str, Callable] = {
    "eq": np.equal,
    "ne": np.not_equal,
    **{name: np.less for name in ("lt", "lo")},
    **{name: np.less_equal for name in ("le", "ls")},
    **{name: np.greater for name in ("gt", "hi")},
    **{name: np.greater_equal for name in ("ge", "hs")},
}
_COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
_UNSIGNED_ONLY = ("lo", "ls", "hi", "hs")
_UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu")
_ALL = (*_ORDERED, *_UNORDERED, "num", "nan")


def comparison(name: str, is_float: bool) -> Callable:
    """The function of a comparison; those ending in `u` are true for a NaN, `ne` of floats is false for one."""
    if name in _UNORDERED:
        ordered = _ORDERED[name[:2]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "ne" and is_float:
        return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
    return _ORDERED[name]


def _decode_comparison(d: Decoding) -> tuple[Callable, list]:
    """The function and the two sources, which for halves and pairs are widened."""
    type = d.modifiers.pop()
    is_float = type.startswith(("f", "bf"))
    compare = comparison(d.choice(*_ALL), is_float)
    if type in ("f16", "bf16", "f16x2", "bf16x2"):
        read = (lambda bits: widen(flush_bits(bits, type), type)) if d.flag("ftz") else lambda bits: widen(bits, type)
        raw = "b32" if type.endswith("x2") else "b16"
        return lambda a, b: compare(read(a), read(b)), [d.source(1, raw), d.source(2, raw)]
    if d.flag("ftz"):
        inner = compare
        compare = lambda a, b: inner(flush(a), flush(b))  # noqa: E731
    return compare, [d.source(1, type), d.scalar_or_source(2, type)]


@RULES.pure("setp")
def decode_setp(d: Decoding):
    combine_name = d.choice(*_COMBINE, default="none")
    is_pair = d.instruction.opcode.endswith("x2")
    compare, (a, b) = _decode_comparison(d)
    first, second = d.destination_pair()
    write_first, write_second = d.set(first, "pred"), d.set(second, "pred")
    combine = _COMBINE.get(combine_name)
    other = d.source(3, "pred") if combine else None

    def run(group):
        result = compare(a(group), b(group))
        opposite = result[..., 1] if is_pair else ~result if second is not None else result
        result = result[..., 0] if is_pair else result
        if combine is not None:
            c = other(group)
            result, opposite = combine(result, c), combine(opposite, c)
        write_first(group, result)
        write_second(group, opposite)

    return run


@RULES.pure("set")
def decode_set(d: Decoding):
    """All ones (or 1.0) where the comparison holds."""
    source_type, result = d.modifiers.pop(), d.modifiers.pop()
    d.modifiers.append(source_type)
    compare, (a, b) = _decode_comparison(d)
    write = d.destination(0, result)
    yes = np.float32(1) if result == "f32" else np.uint32(0xFFFFFFFF)
    return lambda group: write(group, np.where(compare(a(group), b(group)), yes, yes.dtype.type(0)))


@RULES.pure("selp")
def decode_selp(d: Decoding):
    type = d.type()
    d.computes_parts(type, 2)
    return elementwise(d, lambda a, b, p: np.where(p, a, b), type, type, type, "pred")


@RULES.pure("slct")
def decode_slct(d: Decoding):
    condition = d.type()
    flushed = flush if d.flag("ftz") else np.asarray
    type = d.type()
    return elementwise(d, lambda a, b, c: np.where(flushed(c) >= 0, a, b), type, type, type, condition)
