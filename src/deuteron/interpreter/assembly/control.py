"""Instructions that compute nothing.

@p trap;                        tt.assert(not p, "the kernel executes a trap"), which is checked in every kernel
griddepcontrol.wait;            nothing: no kernel is launched before another has ended
bar.sync 0;                     ttg.barrier, for which the one thread of a program waits for nobody
"""

from __future__ import annotations

from collections.abc import Sequence

from deuteron.interpreter.assembly.registers import Registers, Rule
from deuteron.ir.tt.debug import AssertOp
from deuteron.ir.ttg.barrier import BarrierOp
from deuteron.ir.types import i1
from deuteron.ptx.syntax import Negated, Operand


def nothing(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """What only takes time, or only concerns other kernels of a GPU."""


def barrier(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """Of all threads of the program, or of some of them."""
    r.only(modifiers, "cta", "warp", "sync", "aligned")
    if "sync" not in modifiers:
        raise r.refusal("a barrier that does not wait")
    r.effect(BarrierOp())


def trap(r: Registers, modifiers: list[str], operands: Sequence[Operand]) -> None:
    """Ends the launch, where the guard holds."""
    guard, is_negated = r.instruction.guard, r.instruction.guard_negated
    goes_on = r.constant(0, i1) if guard is None else r.read(guard if is_negated else Negated(guard), "pred")
    r.effect(AssertOp(goes_on, "the kernel executes a trap", always=True))


RULES: dict[str, Rule] = {
    "nanosleep": nothing,
    "griddepcontrol": nothing,
    "bar": barrier,
    "barrier": barrier,
    "trap": trap,
}
