"""Control flow: bra, ret, exit, trap; and what has no effect here: pragma-like instructions, nanosleep, setmaxnreg.

@%p1 bra $L__BB0_2;        splits the group where its threads disagree
"""

from __future__ import annotations

from deuteron.emulator.faults import Fault
from deuteron.emulator.instructions.convergence import WARPGROUP, together
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules
from deuteron.emulator.step import STOP

RULES = Rules()

_NOT_ALL = Fault("setmaxnreg", "is not executed by all warps of a warpgroup")


@RULES.effect("bra")
def decode_bra(d: Decoding):
    d.flag("uni")
    target, pc = d.function.labels[d.operand(0).name], d.pc

    def run(group, mask):
        if mask is None:
            return target
        if not mask.any():
            return None
        group.scheduler.diverge(group, mask, target, pc)
        return STOP

    return run


@RULES.effect("ret", "exit")
def decode_exit(d: Decoding):
    d.flag("uni")
    pc = d.pc

    def run(group, mask):
        if mask is not None and not mask.any():
            return None
        group.scheduler.exit(group, mask, pc)
        return STOP

    return run


@RULES.effect("trap", "brkpt")
def decode_trap(d: Decoding):
    def run(group, mask):
        threads = group.threads if mask is None else group.threads[mask]
        if len(threads):
            raise Fault("trap", "the kernel executes a trap", threads)

    return run


@RULES.effect("nanosleep", "griddepcontrol", "pmevent")
def decode_nothing(d: Decoding):
    """A kernel that runs alone has nothing to wait for."""
    d.modifiers.clear()
    return lambda group, mask: None


@RULES.effect("setmaxnreg")
def decode_setmaxnreg(d: Decoding):
    d.choice("inc", "dec")
    d.choice("sync")
    d.flag("aligned")
    d.type()
    count = d.immediate(0)
    if not 24 <= count <= 256 or count % 8:
        raise d.error(f"setmaxnreg takes a multiple of 8 from 24 to 256, got {count}")

    return together(d, WARPGROUP, lambda group: None, _NOT_ALL)
