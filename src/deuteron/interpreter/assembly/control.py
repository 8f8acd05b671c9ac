"""Instructions that compute nothing.

@p trap;                        tt.assert(not p, "the kernel executes a trap"), which is checked in every kernel
griddepcontrol.wait;            nothing: no kernel is launched before another has ended
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.interpreter.assembly.registers import Registers, Rule
from deuteron.ir.tt.debug import AssertOp
from deuteron.ir.types import i1
from deuteron.ptx.syntax import Negated, Operand


def nothing(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """What only takes time, or only concerns other kernels of a GPU."""


def trap(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """Ends the launch, where the guard holds."""
    guard, is_negated = r.instruction.guard, r.instruction.guard_negated
    goes_on = r.constant(0, i1) if guard is None else r.read(guard if is_negated else Negated(guard), "pred")
    r.effect(AssertOp(goes_on, "the kernel executes a trap", always=True))


RULES: dict[str, Rule] = {"nanosleep": nothing, "griddepcontrol": nothing, "trap": trap}
