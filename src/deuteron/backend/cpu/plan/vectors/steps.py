"""By how much a tile of integers or pointers grows along a dimension of a nest.

i = arange(0, 64)                               1
i[:, None] * 4 + j[None, :]  at (0, 1)          along 0: 4, along 1: 1
i * stride                                      UNKNOWN: the same everywhere, but not known here
i % n                                           IRREGULAR
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.memo import evaluate
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Index, running
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR, Step
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.dtypes import as_signed
from deuteron.ir.types import bit_width_of, is_tile

_Taken = tuple[SSAValue, Index, int]  # a tile, the index at which it is taken, an axis of the nest


class Steps:
    """Finds steps by following the ops that a tile is computed by; what is kept must not change any more."""

    def __init__(self, plan: Plan):
        self._plan = plan
        self._known: dict[_Taken, Step] = plan.steps

    def along(self, value: SSAValue, index: Index, axis: int) -> Step:
        """The step of a tile, taken at an index, per element of an axis of the nest."""
        return evaluate((value, index, axis), self._known, self._inputs, self._compute)

    def _inputs(self, taken: _Taken) -> list[_Taken]:
        value, index, axis = taken
        if axis not in running(index) or not is_tile(value.type):
            return []
        induction = self._plan.storage.inductions.get(value)
        if induction is not None:
            return [(induction.initial, index, axis)]
        if not self._is_computed(value):
            return []
        return [(operand, at, axis) for operand, at in ops.declared(value.owner).operands_at(value.owner, index)]

    def _compute(self, taken: _Taken) -> Step:
        value, index, axis = taken
        if axis not in running(index) or not is_tile(value.type):
            return 0
        steps = [self._known[part] for part in self._inputs(taken)]
        if value in self._plan.storage.inductions:
            return steps[0]
        op = value.owner
        if not self._is_computed(value):
            return IRREGULAR
        is_fixed = steps and all(step == 0 for step in steps)
        step = 0 if is_fixed else ops.declared(op).step(op, steps)
        return as_signed(step, bit_width_of(value.type)) if isinstance(step, int) else step

    def _is_computed(self, value: SSAValue) -> bool:
        """Whether it is computed where it is read: not kept, nor carried by a loop."""
        op = value.owner
        return value not in self._plan.places and isinstance(op, Operation) and ops.declared(op).is_lazy(op)
