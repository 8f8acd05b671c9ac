"""The next slot of a ring: `ttg.ring_next`.

    %i1 = "ttg.ring_next"(%i) <{slots = 3 : i32}> : (i32) -> i32                         0, 1, 2, 0, 1, 2, 0 ...
    %i1, %p1 = "ttg.ring_next"(%i, %p) <{slots = 3 : i32}> : (i32, i32) -> (i32, i32)    a phase: 0, 0, 0, 1, 1, 1, 0

A ring has so many slots in shared memory, used one after the other; slot 0 comes after the last. The phase is the
parity of the round, as mbarriers count theirs: it changes where slot 0 begins the next round. The op stays until it is
lowered, so that analyses read off it which slots differ (analysis/shared_memory/buffer_index.py).
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from deuteron.ir.types import i32


@irdl_op_definition
class RingNextOp(IRDLOperation):
    """The slot after a slot, and the parity of the round that it is used in."""

    name = "ttg.ring_next"
    index = operand_def(i32)
    phase = opt_operand_def(i32)
    next_index = result_def(i32)
    next_phase = opt_result_def(i32)
    slots = prop_def(IntegerAttr)
    traits = traits_def(Pure())

    def __init__(self, index: SSAValue, phase: SSAValue | None, num_slots: int):
        phases = [phase] if phase is not None else []
        super().__init__(
            operands=[index, phases],
            result_types=[i32, [i32] * len(phases)],
            properties={"slots": IntegerAttr(num_slots, i32)},
        )

    @property
    def num_slots(self) -> int:
        return self.slots.value.data

    def verify_(self) -> None:
        if self.num_slots < 1:
            raise VerifyException(f"a ring has 1 or more slots, {self.name} has {self.num_slots}")
        if (self.phase is None) != (self.next_phase is None):
            raise VerifyException(f"{self.name} gives a phase where it takes one")


OPS = [RingNextOp]
