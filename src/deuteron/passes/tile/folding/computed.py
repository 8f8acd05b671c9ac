"""What an elementwise op gives for constants, by the interpreter's rules.

computed(%s = arith.addi(%a, %b) : i8, [100, 100])      -56
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from deuteron.interpreter.rules import RULES
from deuteron.interpreter.values import value_of


def computed(op: Operation, numbers: Sequence[bool | int | float]) -> bool | int | float:
    """The number that the op's result is, where its operands are these."""
    values = [value_of(number, operand.type) for number, operand in zip(numbers, op.operands, strict=True)]
    with np.errstate(all="ignore"):
        return np.asarray(RULES[op.name](None, op, *values)).item()
