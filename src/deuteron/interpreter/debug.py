"""Rules for `tt.print`, `tt.assert` and `ttg.barrier`."""

from __future__ import annotations

import numpy as np

from deuteron.errors import AssertionFailure
from deuteron.interpreter.values import as_signed, as_unsigned, to_storage
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.debug import AssertOp, PrintOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.types import is_float, is_pointer

RULES = RuleTable()


@RULES.on(PrintOp)
def print_values(ctx, op, *values):
    as_hex = bool(op.hex.value.data)
    if not values:
        print(op.line_without_values % ctx.program_id)
    for number, (value, operand, is_signed) in enumerate(
        zip(values, op.operands, op.is_signed.get_values(), strict=True)
    ):
        shown = _printable(value, operand.type, bool(is_signed), as_hex)
        for index in np.ndindex(np.shape(value)):
            print(op.beginning(number) % (*ctx.program_id, *index) + _format(shown[index], as_hex))


def _printable(value: np.ndarray, type, is_signed: bool, as_hex: bool) -> np.ndarray:
    if as_hex:
        stored = np.asarray(to_storage(value, type))
        return stored.view(f"uint{8 * stored.itemsize}")
    if is_float(type):
        return np.asarray(value, np.float64)
    return np.asarray(as_signed(value) if is_signed and not is_pointer(type) else as_unsigned(value))


def _format(number: np.generic, as_hex: bool) -> str:
    if as_hex:
        return f"0x{int(number):0{2 * number.itemsize}x}"
    return f"{number:f}" if isinstance(number, np.floating) else str(number)


@RULES.on(AssertOp)
def assert_(ctx, op, condition):
    if np.all(condition):
        return
    place = f"program {ctx.program_id}"
    if np.shape(condition):
        lane = tuple(int(i) for i in np.argwhere(~condition)[0])
        place = f"lane {lane} of {place}"
    raise AssertionFailure(f"Assertion failed in {place}: {op.message.data}")


@RULES.on(BarrierOp)
def barrier(ctx, op):
    """A program is one thread here."""
