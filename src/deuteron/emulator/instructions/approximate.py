"""The special function unit: ex2, lg2, sin, cos, tanh of float32.

    ex2.approx.ftz.f32 %r2, %r1;

They are computed in float64 and rounded to float32, so they differ from a GPU within the error that the PTX manual
allows (ex2 2 ulp, lg2 2^-22 absolute near 1, sin and cos 2^-20.5 absolute in [-pi, pi], tanh 2^-11 relative).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deuteron.emulator.instructions.elementwise import elementwise
from deuteron.emulator.instructions.floating import with_flush
from deuteron.emulator.instructions.operands import Decoding
from deuteron.emulator.instructions.rules import Rules

RULES = Rules()


def in_double(function: Callable) -> Callable:
    return lambda a: function(np.asarray(a, np.float64)).astype(np.float32)


FUNCTIONS: dict[str, Callable] = {
    "ex2": in_double(np.exp2),
    "lg2": in_double(np.log2),
    "sin": in_double(np.sin),
    "cos": in_double(np.cos),
    "tanh": in_double(np.tanh),
}


@RULES.pure(*FUNCTIONS, kind="float")
def decode_function(d: Decoding):
    type = d.type()
    d.choice("approx")
    function = FUNCTIONS[d.instruction.opcode.split(".")[0]]
    return elementwise(d, with_flush(function) if d.flag("ftz") else function, type, type)
