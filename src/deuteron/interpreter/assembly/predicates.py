"""Comparisons, what kind of number a float is, and choices by a predicate or a sign.

setp.lt.and.f32 p, a, b, q      p = a < b && q
testp.infinite.f32 p, a         p = (bits of a without the sign) == 0x7F800000
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from deuteron.interpreter.assembly.registers import BITS, FLOATS, TYPES, Registers, Rule
from deuteron.ir.arith import CmpFOp, CmpIOp
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f16, f32, f64
from deuteron.ptx.syntax import Operand

_SIGNED, _UNSIGNED = ("eq", "ne", "slt", "sle", "sgt", "sge"), ("eq", "ne", "ult", "ule", "ugt", "uge")
_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord", "nan": "uno"}
_UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}
_EXPONENTS = {f16: 0x7C00, bf16: 0x7F80, f32: 0x7F800000, f64: 0x7FF0000000000000}
_COMPARISONS = dict(zip(("eq", "ne", "lt", "le", "gt", "ge"), zip(_SIGNED, _UNSIGNED, strict=True), strict=True))
_COMBINATIONS = {"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp}


def select(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    x, y = (r.read(operand, type) for operand in operands[1:3])
    r.write(operands[0], r.select(r.read(operands[3], "pred"), x, y), type)


def select_by_sign(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """slct: the first where the third is 0 or more; of a float NaN is not."""
    *rest, type, sign = modifiers
    r.only(rest, "ftz")
    r.only([sign], "s32", "f32")
    x, y = (r.read(operand, type) for operand in operands[1:3])
    of = r.read(operands[3], sign)
    of = flushed(r, of) if rest else of
    zero = r.constant(0 if sign == "s32" else 0.0, TYPES[sign])
    r.write(operands[0], r.select(compare(r, "ge", of, zero, sign), x, y), type)


def set_predicate(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """setp: a comparison, and what another predicate makes of it."""
    comparison, *rest, type = modifiers
    combine = _COMBINATIONS.get(rest[0]) if rest and len(operands) == 4 else None
    r.only(rest[1:] if combine else rest, "ftz")
    if combine is None and len(operands) != 3:
        raise r.refusal(f"{len(operands)} operands")
    x, y = (r.read(operand, type) for operand in operands[1:3])
    if "ftz" in rest:
        x, y = flushed(r, x), flushed(r, y)
    result = compare(r, comparison, x, y, type)
    r.write(operands[0], r.op(combine, result, r.read(operands[3], "pred")) if combine else result, "pred")


def test(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """testp: what kind of number a float is, by its bits without the sign. Zero is a normal one."""
    kind, type = modifiers
    element = TYPES[type]
    bits, infinity = BITS[bit_width_of(element)], r.constant(_EXPONENTS[element], BITS[bit_width_of(element)])
    magnitude = r.op(arith.AndIOp, r.bits(r.read(operands[1], type), bits), r.constant(_magnitude_bits(element), bits))
    least = r.constant(_EXPONENTS[element] & -_EXPONENTS[element], bits)
    below_infinity, below_normal = (compare_integers(r, "ult", magnitude, limit) for limit in (infinity, least))
    is_zero = compare_integers(r, "eq", magnitude, r.constant(0, bits))
    has_exponent = r.select(below_normal, is_zero, below_infinity)
    answers = {
        "finite": lambda: below_infinity,
        "infinite": lambda: compare_integers(r, "eq", magnitude, infinity),
        "number": lambda: compare_integers(r, "ule", magnitude, infinity),
        "notanumber": lambda: compare_integers(r, "ugt", magnitude, infinity),
        "normal": lambda: has_exponent,
        "subnormal": lambda: r.op(arith.XOrIOp, below_infinity, has_exponent),
    }
    r.write(operands[0], answers[kind](), "pred")


def _magnitude_bits(element: Attribute) -> int:
    """All bits but the sign."""
    return (1 << bit_width_of(element) - 1) - 1


def flushed(r: Registers, x: SSAValue) -> SSAValue:
    """A denormal float as a zero of its sign."""
    element = element_type_of(x.type)
    bits, zero = BITS[bit_width_of(element)], r.constant(0, BITS[bit_width_of(element)])
    exponent = r.op(arith.AndIOp, r.bits(x, bits), r.constant(_EXPONENTS[element], bits))
    sign = r.op(arith.AndIOp, r.bits(x, bits), r.constant(-(1 << bit_width_of(element) - 1), bits))
    return r.select(compare_integers(r, "eq", exponent, zero), r.bits(sign, element), x)


def compare(r: Registers, comparison: str, x: SSAValue, y: SSAValue, type: str) -> SSAValue:
    if type in FLOATS:
        predicate = (_ORDERED | _UNORDERED).get(comparison)
        if predicate is None:
            raise r.refusal(f"'.{comparison}' here")
        return r.value(CmpFOp(x, y, predicate))
    unsigned = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(comparison)
    if (unsigned or comparison) not in _COMPARISONS:
        raise r.refusal(f"'.{comparison}' here")
    signed_name, unsigned_name = _COMPARISONS[unsigned or comparison]
    return compare_integers(r, signed_name if type.startswith("s") and not unsigned else unsigned_name, x, y)


def compare_integers(r: Registers, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
    return r.value(CmpIOp(x, y, predicate))


RULES: dict[str, Rule] = {
    "selp": select,
    "slct": select_by_sign,
    "setp": set_predicate,
    "testp": test,
}
