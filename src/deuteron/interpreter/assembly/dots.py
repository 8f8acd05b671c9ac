"""Sums of products of the parts of registers.

dp4a.s32.u32 d, a, b, c;        d = a.s8[0] * b.u8[0] + ... + a.s8[3] * b.u8[3] + c
dp2a.hi.s32.s32 d, a, b, c;     d = a.s16[0] * b.s8[2] + a.s16[1] * b.s8[3] + c
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from deuteron.interpreter.assembly.registers import Registers, Rule
from deuteron.ptx.syntax import Operand


def dot_of_four(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    first, second = modifiers
    _add_products(r, operands, _parts(r, operands[1], first, 4), _parts(r, operands[2], second, 4))


def dot_of_two(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """Of two parts of 16 bits with the lower or the upper two of four."""
    half, first, second = modifiers
    r.only([half], "lo", "hi")
    bytes = _parts(r, operands[2], second, 4)
    _add_products(r, operands, _parts(r, operands[1], first, 2), bytes[:2] if half == "lo" else bytes[2:])


def _parts(r: Registers, operand: Operand, type: str, count: int) -> list[SSAValue]:
    """The parts of a register of 32 bits, in 32 bits each."""
    r.only([type], "s32", "u32")
    return [r.resized(part, 32, type == "s32") for part in r.split(r.read(operand, "b32"), count)]


def _add_products(r: Registers, operands: Sequence[Operand], a: list[SSAValue], b: list[SSAValue]) -> None:
    total = r.read(operands[3], "b32")
    for x, y in zip(a, b, strict=True):
        total = r.op(arith.AddiOp, total, r.op(arith.MuliOp, x, y))
    r.write(operands[0], total, "b32")


RULES: dict[str, Rule] = {"dp4a": dot_of_four, "dp2a": dot_of_two}
