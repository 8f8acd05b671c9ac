"""Instructions on integers, bits and predicates.

lop3.b32 d, a, b, c, 0xE8       (a & b & c) | (a & b & ~c) | ...      one term for each bit of the table
shl.b32 d, a, b                 b < 32 ? a << b : 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from deuteron.interpreter.assembly.registers import BITS, FLOATS, INTEGERS, PAIRS, TYPES, Registers, Rule
from deuteron.ir.arith import CmpFOp, CmpIOp
from deuteron.ir.types import bf16, bit_width_of, element_type_of, f16, f32, i1, i32, i64
from deuteron.ptx.syntax import Immediate, Operand, Vector

_SIGNED, _UNSIGNED = ("eq", "ne", "slt", "sle", "sgt", "sge"), ("eq", "ne", "ult", "ule", "ugt", "uge")
_ORDERED = {"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord", "nan": "uno"}
_UNORDERED = {"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}
_EXPONENTS = {f16: 0x7C00, bf16: 0x7F80, f32: 0x7F800000}
_COMPARISONS = dict(zip(("eq", "ne", "lt", "le", "gt", "ge"), zip(_SIGNED, _UNSIGNED, strict=True), strict=True))


def arithmetic(signed: type, unsigned: type) -> Rule:
    """An op of two integers, or of two pairs of 16 bits."""

    def rule(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
        *rest, type = modifiers
        r.only(rest)
        op = signed if type.startswith("s") else unsigned
        columns = zip(*(r.parts(operand, type) for operand in operands[1:]), strict=True)
        r.write_parts(operands[0], [r.op(op, *column) for column in columns], type)

    return rule


def multiply(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """mul and mad: the lower half of the product, the upper one, or all of it."""
    *form, type = modifiers
    r.only(form, "lo", "hi", "wide")
    bits, is_signed = bit_width_of(TYPES[type]), type.startswith("s")
    wide = form in (["wide"], ["hi"])
    if wide and bits == 64:
        raise r.refusal("products of 128 bits")
    a, b = (r.resized(r.read(o, type), 2 * bits if wide else bits, is_signed) for o in operands[1:3])
    product = r.op(arith.MuliOp, a, b)
    if form == ["hi"]:
        product = r.resized(r.op(arith.ShRUIOp, product, r.constant(bits, BITS[2 * bits])), bits)
    result = f"{type[0]}{2 * bits}" if form == ["wide"] else type
    if len(operands) == 4:
        product = r.op(arith.AddiOp, product, r.read(operands[3], result))
    r.write(operands[0], product, result)


def negate(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    r.write(operands[0], r.op(arith.SubiOp, r.constant(0, TYPES[type]), r.read(operands[1], type)), type)


def absolute(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    x = r.read(operands[1], type)
    r.write(operands[0], r.op(arith.MaxSIOp, x, r.op(arith.SubiOp, r.constant(0, TYPES[type]), x)), type)


def logic(op: type) -> Rule:
    def rule(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
        (type,) = modifiers
        r.write(operands[0], r.op(op, *(r.read(operand, type) for operand in operands[1:])), type)

    return rule


def invert(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    r.write(operands[0], _not(r, r.read(operands[1], type)), type)


def _not(r: Registers, x: SSAValue) -> SSAValue:
    type = BITS[bit_width_of(x.type)]
    return r.op(arith.XOrIOp, x, r.constant(1 if type == i1 else -1, type))


def shift(is_left: bool) -> Rule:
    """By the width or more: 0, or the sign everywhere."""

    def rule(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
        (type,) = modifiers
        x, amount = r.read(operands[1], type), r.read(operands[2], "u32")
        r.write(operands[0], shifted(r, x, amount, is_left, type.startswith("s")), type)

    return rule


def shifted(r: Registers, x: SSAValue, amount: SSAValue, is_left: bool, is_signed: bool = False) -> SSAValue:
    bits = bit_width_of(x.type)
    type = BITS[bits]
    most = r.op(arith.MinUIOp, amount, r.constant(bits - 1, i32))
    op = arith.ShLIOp if is_left else arith.ShRSIOp if is_signed else arith.ShRUIOp
    moved = r.op(op, x, r.resized(most, bits))
    if is_signed:
        return moved
    return r.select(_compare(r, "ult", amount, r.constant(bits, i32)), moved, r.constant(0, type))


def funnel(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """shf: b:a shifted, 32 bits of it."""
    direction, mode, type = modifiers
    r.only([direction, mode, type], "l", "r", "wrap", "clamp", "b32")
    low, high, amount = (r.read(operand, "u32") for operand in operands[1:4])
    if mode == "wrap":
        amount = r.op(arith.AndIOp, amount, r.constant(31, i32))
    else:
        amount = r.op(arith.MinUIOp, amount, r.constant(32, i32))
    whole = r.op(arith.OrIOp, r.op(arith.ShLIOp, r.resized(high, 64), r.constant(32, i64)), r.resized(low, 64))
    moved = shifted(r, whole, amount, direction == "l")
    half = r.op(arith.ShRUIOp, moved, r.constant(32, i64)) if direction == "l" else moved
    r.write(operands[0], r.resized(half, 32), "b32")


def lop3(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    r.only(modifiers, "b32")
    inputs, table = [r.read(operand, "b32") for operand in operands[1:4]], _number(r, operands[4])
    total = r.constant(0, i32)
    for index in range(8):
        if table >> index & 1:
            terms = [x if index >> (2 - n) & 1 else _not(r, x) for n, x in enumerate(inputs)]
            total = r.op(arith.OrIOp, total, r.op(arith.AndIOp, r.op(arith.AndIOp, *terms[:2]), terms[2]))
    r.write(operands[0], total, "b32")


def permute(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """prmt in its default mode: each nibble of the selector chooses one of eight bytes, or its sign."""
    r.only(modifiers, "b32")
    a, b, selector = (r.read(operand, "b32") for operand in operands[1:4])
    whole = r.joined([a, b])
    chosen = []
    for number in range(4):
        nibble = r.op(arith.ShRUIOp, selector, r.constant(4 * number, i32))
        index = r.op(arith.AndIOp, nibble, r.constant(7, i32))
        place = r.resized(r.op(arith.ShLIOp, index, r.constant(3, i32)), 64)
        byte = r.resized(r.op(arith.ShRUIOp, whole, place), 8)
        sign = r.op(arith.ShRSIOp, byte, r.constant(7, BITS[8]))
        is_sign = _compare(r, "ne", r.op(arith.AndIOp, nibble, r.constant(8, i32)), r.constant(0, i32))
        chosen.append(r.select(is_sign, sign, byte))
    r.write(operands[0], r.joined(chosen), "b32")


def extract(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """bfe of constant places."""
    (type,) = modifiers
    bits, x = bit_width_of(TYPES[type]), r.read(operands[1], type)
    begin, length = _field(r, operands[2:4], bits)
    if not length and type.startswith("s") and _number(r, operands[3]) & 255:
        begin, length = bits - 1, 1  # beyond the highest bit are copies of it
    if not length:
        r.write(operands[0], r.constant(0, TYPES[type]), type)
        return
    up = r.op(arith.ShLIOp, x, r.constant(bits - begin - length, TYPES[type]))
    op = arith.ShRSIOp if type.startswith("s") else arith.ShRUIOp
    r.write(operands[0], r.op(op, up, r.constant(bits - length, TYPES[type])), type)


def insert(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """bfi of constant places: some bits of b replaced by the lowest of a."""
    (type,) = modifiers
    element = TYPES[type]
    begin, length = _field(r, operands[3:5], bit_width_of(element))
    mask = ((1 << length) - 1) << begin
    a, b = (r.read(operand, type) for operand in operands[1:3])
    moved = r.op(arith.AndIOp, r.op(arith.ShLIOp, a, r.constant(begin, element)), r.constant(mask, element))
    r.write(operands[0], r.op(arith.OrIOp, moved, r.op(arith.AndIOp, b, r.constant(~mask, element))), type)


def _field(r: Registers, operands: Sequence[Operand], bits: int) -> tuple[int, int]:
    begin, length = (_number(r, operand) & 255 for operand in operands)
    return (min(begin, bits - 1), min(length, bits - begin)) if begin < bits else (0, 0)


def reverse(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """brev: neighbours change places, then pairs of them ..."""
    (type,) = modifiers
    element, x, step = TYPES[type], r.read(operands[1], type), 1
    bits = bit_width_of(element)
    while step < bits:
        mask = sum(((1 << step) - 1) << place for place in range(0, bits, 2 * step))
        low, high = r.op(arith.AndIOp, x, r.constant(mask, element)), r.op(arith.ShRUIOp, x, r.constant(step, element))
        high = r.op(arith.AndIOp, high, r.constant(mask, element))
        x, step = r.op(arith.OrIOp, r.op(arith.ShLIOp, low, r.constant(step, element)), high), 2 * step
    r.write(operands[0], x, type)


def count_ones(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    r.write(operands[0], r.resized(_ones(r, r.read(operands[1], type)), 32), "u32")


def count_zeros(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """clz: all below the highest one set, then the rest counted."""
    (type,) = modifiers
    element, x, step = TYPES[type], r.read(operands[1], type), 1
    while step < bit_width_of(element):
        x, step = r.op(arith.OrIOp, x, r.op(arith.ShRUIOp, x, r.constant(step, element))), 2 * step
    r.write(operands[0], r.resized(_ones(r, _not(r, x)), 32), "u32")


def _ones(r: Registers, x: SSAValue) -> SSAValue:
    bits, step = bit_width_of(x.type), 1
    while step < bits:
        mask = r.constant(sum(((1 << step) - 1) << place for place in range(0, bits, 2 * step)), BITS[bits])
        upper = r.op(arith.ShRUIOp, x, r.constant(step, BITS[bits]))
        x = r.op(arith.AddiOp, r.op(arith.AndIOp, x, mask), r.op(arith.AndIOp, upper, mask))
        step *= 2
    return x


def move(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """Also of several registers into one, and of one into several."""
    (type,) = modifiers
    target, source = operands
    if isinstance(target, Vector):
        parts = r.split(r.read(source, f"b{bit_width_of(TYPES[type])}"), len(target.elements))
        for element, part in zip(target.elements, parts, strict=True):
            r.write(element, part, "b8")
    elif isinstance(source, Vector):
        bits = bit_width_of(TYPES[type]) // len(source.elements)
        r.write(target, r.joined([r.read(element, f"b{bits}") for element in source.elements]), type)
    else:
        r.write(target, r.read(source, type), type)


def select(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    x, y = (r.read(operand, type) for operand in operands[1:3])
    r.write(operands[0], r.select(r.read(operands[3], "pred"), x, y), type)


def set_predicate(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    comparison, *rest, type = modifiers
    r.only(rest, "ftz")
    x, y = (r.read(operand, type) for operand in operands[1:3])
    if rest:
        x, y = flushed(r, x), flushed(r, y)
    r.write(operands[0], compare(r, comparison, x, y, type), "pred")


def flushed(r: Registers, x: SSAValue) -> SSAValue:
    """A denormal float as a zero of its sign."""
    element = element_type_of(x.type)
    bits, zero = BITS[bit_width_of(element)], r.constant(0, BITS[bit_width_of(element)])
    exponent = r.op(arith.AndIOp, r.bits(x, bits), r.constant(_EXPONENTS[element], bits))
    sign = r.op(arith.AndIOp, r.bits(x, bits), r.constant(-(1 << bit_width_of(element) - 1), bits))
    return r.select(_compare(r, "eq", exponent, zero), r.bits(sign, element), x)


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
    return _compare(r, signed_name if type.startswith("s") and not unsigned else unsigned_name, x, y)


def _compare(r: Registers, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
    return r.value(CmpIOp(x, y, predicate))


def _number(r: Registers, operand: Operand) -> int:
    if not isinstance(operand, Immediate):
        raise r.refusal("a place or table that is in a register")
    return operand.value


def by_kind(integers: Rule, floats: Rule) -> Rule:
    """One rule for the types of integers, another one for the others."""

    def rule(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
        is_integer = modifiers[-1] in INTEGERS or PAIRS.get(modifiers[-1]) in INTEGERS
        (integers if is_integer else floats)(r, modifiers, operands)

    return rule


RULES: dict[str, Rule] = {
    "and": logic(arith.AndIOp),
    "or": logic(arith.OrIOp),
    "xor": logic(arith.XOrIOp),
    "not": invert,
    "shl": shift(is_left=True),
    "shr": shift(is_left=False),
    "shf": funnel,
    "lop3": lop3,
    "prmt": permute,
    "bfe": extract,
    "bfi": insert,
    "brev": reverse,
    "popc": count_ones,
    "clz": count_zeros,
    "mov": move,
    "selp": select,
    "setp": set_predicate,
    "mad": multiply,
}
INTEGER_RULES: dict[str, Callable] = {
    "add": arithmetic(arith.AddiOp, arith.AddiOp),
    "sub": arithmetic(arith.SubiOp, arith.SubiOp),
    "min": arithmetic(arith.MinSIOp, arith.MinUIOp),
    "max": arithmetic(arith.MaxSIOp, arith.MaxUIOp),
    "div": arithmetic(arith.DivSIOp, arith.DivUIOp),
    "rem": arithmetic(arith.RemSIOp, arith.RemUIOp),
    "mul": multiply,
    "neg": negate,
    "abs": absolute,
}
