"""The scalars of a kernel while it is executed for its timeline: integers as the interpreter computes them.

scalars = Scalars(kernel, size=512, program=3)        every integer argument is 512, program 3 of a grid of 8
scalars.run(op)                            the op's results are known afterwards, or they are not
scalars.integer(value)                     512, or None where it depends on memory or a float
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from deuteron.interpreter.rules import RULES
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.ttg.ring import RingNextOp

_GRID = 8
_DTYPES = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


class Scalars:
    """What is known of the scalars so far."""

    def __init__(self, kernel: FuncOp, size: int, program: int):
        self.program_id, self.grid, self.constants = (program, 0, 0), (_GRID,) * 3, {}  # as rules want them
        self._known: dict[SSAValue, Any] = {}
        for argument in kernel.args:
            if isinstance(argument.type, IntegerType):
                self.set(argument, size)

    def set(self, value: SSAValue, number: int | None) -> None:
        """Give a scalar its value; None: not known."""
        if number is None or not isinstance(value.type, IntegerType):
            self._known.pop(value, None)
        else:
            self._known[value] = np.asarray(number, _DTYPES[value.type.width.data])

    def integer(self, value: SSAValue | None) -> int | None:
        found = self._known.get(value)
        return None if found is None else int(found)

    def run(self, op: Operation) -> None:
        """Compute an op on scalars, where all that it needs is known."""
        for result in op.results:
            self._known.pop(result, None)
        if isinstance(op, RingNextOp):
            self._next(op)
        elif self._is_computed(op):
            operands = [self._known[operand] for operand in op.operands]
            self._known[op.results[0]] = np.asarray(RULES[op.name](self, op, *operands))

    def _is_computed(self, op: Operation) -> bool:
        is_scalar = len(op.results) == 1 and isinstance(op.results[0].type, IntegerType)
        is_arithmetic = op.name.startswith("arith.") or isinstance(op, GetProgramIdOp | GetNumProgramsOp)
        return is_scalar and is_arithmetic and op.name in RULES and all(v in self._known for v in op.operands)

    def _next(self, op: RingNextOp) -> None:
        index, phase = self.integer(op.index), self.integer(op.phase)
        if index is None:
            return
        following = (index + 1) % op.num_slots
        self.set(op.next_index, following)
        if op.next_phase is not None and phase is not None:
            self.set(op.next_phase, phase ^ (following == 0))
