"""PTX whose loops advance no more addresses than registers have room for.

    add.s64 %rd41, %rd41, 16384;        of 24 copies each iteration: 48 registers
    ...
  ->
    add.s64 %rd41, %rd7, 2048;          each from one that the loop advances, where it is needed
    ...

LLVM's loop strength reduction makes a variable of the loop of each address that assembly takes, since only loads and
stores take a constant besides, and does not count the registers of tiles: of recurrences in few warps it takes a
quarter, and what they hold is spilled. Without it other kernels compute 17 % more in their loops. So a kernel that
advances many is emitted once more without, and the text is taken of which less lives at once. A long one, of which an
emission takes half a second and more, is emitted without first: if tiles alone fill the registers 1.5 times, that is
the text.
"""

from __future__ import annotations

import re
from functools import partial

from deuteron.backend.cuda.assembler.live_registers import live_registers
from deuteron.backend.cuda.target import Architecture
from deuteron.machine.gpu import USUAL_REGISTERS

# Registers that are advanced: with fewer there is nothing to win. Of 690 kernels 20 have as many.
MANY = 10
# Registers less at once. Of those 20 kernels, 16 have 7 to 122 less, and 0.73 to 1.004 of the instructions, counted
# ten times in loops; the others none, and up to 1.06.
LEAST_SAVED = 4
# Times the registers of a thread that live at once without. Seven kernels of linear attention with more, 1.54 times and
# up, had 6 to 27 less than with it; one with 1.73 times as many, whose loops hold few addresses, had 27 more, and 2.6 %
# more instructions: it is shorter now, and emitted twice.
CROWDED = 3 / 2
_ADVANCED = re.compile(r"^\tadd\.[su](\d+) \t(%\w+), \2, ", re.MULTILINE)
_WORD_BITS = 32


def emit_ptx_to_fit(llir: str, architecture: Architecture) -> str:
    from deuteron.backend.llvm.nvptx import emit_ptx, is_long  # heavy

    emit = partial(emit_ptx, llir, architecture.name, architecture.ptx_version)
    plain = emit(strength_reduction=False) if is_long(llir) else None
    if plain and live_registers(plain) > CROWDED * USUAL_REGISTERS:
        return plain
    ptx = emit()
    if advanced_registers(ptx) < MANY:
        return ptx
    plain = plain or emit(strength_reduction=False)
    return plain if live_registers(ptx) - live_registers(plain) >= LEAST_SAVED else ptx


def advanced_registers(ptx: str) -> int:
    """That loops add to, of 32 bits each."""
    return sum(int(bits) // _WORD_BITS for bits, _ in set(_ADVANCED.findall(ptx)))
