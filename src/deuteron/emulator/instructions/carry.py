"""Integer arithmetic with the carry flag: add.cc, addc, sub.cc, subc, mad.cc, madc.

add.cc.u32 %r5, %r1, %r3;        the flag is a register of its own, the last of the function
addc.u32 %r6, %r2, %r4;
"""

from __future__ import annotations

import numpy as np

from deuteron.emulator.instructions.integer import multiply_high
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.types import UNSIGNED

RULES = Rules()


def add(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unsigned sum and carry out."""
    partial = a + b
    total = partial + carry
    return total, (partial < a) | (total < partial)


def subtract(a: np.ndarray, b: np.ndarray, borrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    difference = a - b
    return difference - borrow, (a < b) | (difference < borrow)


@RULES.pure("add.cc", "addc", "sub.cc", "subc")
def decode_add(d: Decoding):
    name = d.instruction.opcode.split(".")[0]
    combine = add if name.startswith("add") else subtract
    return _with_carry(d, name.endswith("c"), lambda a, b, c, carry: combine(a, b, carry), 2)


@RULES.pure("mad.lo.cc", "mad.hi.cc", "madc.lo", "madc.hi")
def decode_mad(d: Decoding):
    name, half = d.instruction.opcode.split(".")[:2]
    is_signed = d.modifiers[-1].startswith("s")

    def combine(a, b, c, carry):
        if half == "lo":
            return add(a * b, c, carry)
        signed = np.dtype(f"i{a.dtype.itemsize}")
        high = multiply_high(a.view(signed), b.view(signed)).view(a.dtype) if is_signed else multiply_high(a, b)
        return add(high, c, carry)

    return _with_carry(d, name == "madc", combine, 3)


def _with_carry(d: Decoding, takes_carry: bool, combine, count: int):
    gives_carry = d.flag("cc") or ".cc" in d.instruction.opcode
    size = np.dtype(UNSIGNED[4] if d.type().endswith("32") else UNSIGNED[8]).itemsize
    bits = f"b{8 * size}"
    reads = [d.source(position, bits) for position in range(1, count + 1)]
    write = d.destination(0, bits)
    read_carry = d.get(d.carry, "pred") if takes_carry else None
    write_carry = d.set(d.carry, "pred") if gives_carry else None

    def run(group):
        values = [read(group) for read in reads]
        carry = np.zeros(group.size, bool) if read_carry is None else read_carry(group)
        padded = (*values, None)[:3]
        result, out = combine(*padded, carry.astype(values[0].dtype))
        write(group, result)
        if write_carry is not None:
            write_carry(group, out)

    return run
