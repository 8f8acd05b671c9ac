"""Instructions on integers and bits, and moves.

lop3.b32 d, a, b, c, 0xE8       (a & b & c) | (a & b & ~c) | ...      one term for each bit of the table
shl.b32 d, a, b                 b < 32 ? a << b : 0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from deuteron.interpreter.assembly.predicates import compare_integers
from deuteron.interpreter.assembly.registers import BITS, INTEGERS, PAIRS, TYPES, Registers, Rule
from deuteron.ir.tt.convert import MulHiUIOp
from deuteron.ir.types import bit_width_of, i1, i32, i64
from deuteron.ptx.syntax import Immediate, Operand, Vector


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
    a, b = (r.read(operand, type) for operand in operands[1:3])
    if form == ["hi"]:
        product = _upper_half(r, a, b, is_signed)
    else:
        product = r.op(arith.MuliOp, *(r.resized(x, 2 * bits if form == ["wide"] else bits, is_signed) for x in (a, b)))
    result = f"{type[0]}{2 * bits}" if form == ["wide"] else type
    if len(operands) == 4:
        product = r.op(arith.AddiOp, product, r.read(operands[3], result))
    r.write(operands[0], product, result)


def _upper_half(r: Registers, a: SSAValue, b: SSAValue, is_signed: bool) -> SSAValue:
    """Of a product of twice as many bits: a negative factor is 2**bits less than the same bits without a sign."""
    bits = bit_width_of(a.type)
    if bits < 32:
        product = r.op(arith.MuliOp, *(r.resized(x, 2 * bits, is_signed) for x in (a, b)))
        return r.resized(r.op(arith.ShRUIOp, product, r.constant(bits, BITS[2 * bits])), bits)
    upper = r.op(MulHiUIOp, a, b)
    for x, other in ((a, b), (b, a)) if is_signed else ():
        sign = r.op(arith.ShRSIOp, x, r.constant(bits - 1, BITS[bits]))
        upper = r.op(arith.SubiOp, upper, r.op(arith.AndIOp, sign, other))
    return upper


def negate(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    r.write(operands[0], r.op(arith.SubiOp, r.constant(0, TYPES[type]), r.read(operands[1], type)), type)


def absolute(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    (type,) = modifiers
    x = r.read(operands[1], type)
    r.write(operands[0], r.op(arith.MaxSIOp, x, r.op(arith.SubiOp, r.constant(0, TYPES[type]), x)), type)


def absolute_difference(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """sad: |a - b| + c."""
    (type,) = modifiers
    a, b, c = (r.read(operand, type) for operand in operands[1:4])
    most, least = (arith.MaxSIOp, arith.MinSIOp) if type.startswith("s") else (arith.MaxUIOp, arith.MinUIOp)
    difference = r.op(arith.SubiOp, r.op(most, a, b), r.op(least, a, b))
    r.write(operands[0], r.op(arith.AddiOp, difference, c), type)


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
    return r.select(compare_integers(r, "ult", amount, r.constant(bits, i32)), moved, r.constant(0, type))


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
        is_sign = compare_integers(r, "ne", r.op(arith.AndIOp, nibble, r.constant(8, i32)), r.constant(0, i32))
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
    filled = _filled(r, r.read(operands[1], type))
    r.write(operands[0], r.resized(_ones(r, _not(r, filled)), 32), "u32")


def find_highest(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """bfind: the place of the highest one, of a negative number of the highest zero; or how far it is from the top.
    Of none -1.
    """
    *rest, type = modifiers
    r.only(rest, "shiftamt")
    x, bits = r.read(operands[1], type), bit_width_of(TYPES[type])
    if type.startswith("s"):
        x = r.op(arith.XOrIOp, x, r.op(arith.ShRSIOp, x, r.constant(bits - 1, TYPES[type])))
    below = r.resized(_ones(r, _filled(r, x)), 32)
    place = r.op(arith.SubiOp, below, r.constant(1, i32))
    if rest:
        is_none = compare_integers(r, "eq", below, r.constant(0, i32))
        place = r.select(is_none, place, r.op(arith.SubiOp, r.constant(bits, i32), below))
    r.write(operands[0], place, "u32")


def _filled(r: Registers, x: SSAValue) -> SSAValue:
    """All bits below the highest one set."""
    bits, step = bit_width_of(x.type), 1
    while step < bits:
        x, step = r.op(arith.OrIOp, x, r.op(arith.ShRUIOp, x, r.constant(step, BITS[bits]))), 2 * step
    return x


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
    "bfind": find_highest,
    "sad": absolute_difference,
    "mov": move,
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
