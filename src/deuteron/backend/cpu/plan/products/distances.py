"""Whether a loop moves a tile of addresses as a whole: elements along a dimension stay as far apart as they are.

for k in ...:
    ptr + rows[:, None] * stride + (k + ks)[None, :]        rows and columns stay as far apart
    ptr + rows[:, None] * k + ks[None, :]                   rows do not
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.memo import evaluate
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Index, identity_index
from deuteron.backend.cpu.plan.ops.elementwise import WIDENING, is_offset
from deuteron.backend.cpu.plan.products.direct import arguments_of
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.tt.memory import AddPtrOp
from deuteron.ir.types import shape_of

_Taken = tuple[SSAValue, Index]


def keeps_distances(plan: Plan, tile: SSAValue, axis: int, loop: Operation) -> bool:
    """Whether each iteration of the loop has the same distances along an axis. Known are sums of tiles of which each is
    the same in all iterations, or grows by a number; and multiples of those by what is the same.
    """
    return _Distances(plan, axis, loop).are_kept(tile)


@dataclass(frozen=True)
class _Distances:
    plan: Plan
    axis: int
    loop: Operation

    def are_kept(self, tile: SSAValue) -> bool:
        def compute(taken: _Taken) -> bool:
            parts = self._parts(*taken)
            return all(known[part] for part in parts) if parts else self._are_known(*taken)

        known: dict[_Taken, bool] = {}
        return evaluate((tile, identity_index(shape_of(tile.type))), known, lambda taken: self._parts(*taken), compute)

    def _parts(self, value: SSAValue, index: Index) -> list[_Taken]:
        """Of whose distances those of a value are made, if they are not known."""
        op = value.owner
        if not isinstance(op, Operation) or self._are_known(value, index):
            return []
        operands = ops.declared(op).operands_at(op, index)
        if isinstance(op, arith.MuliOp):
            number = next((taken for taken in operands if self._is_number(*taken)), None)
            return [taken for taken in operands if taken != number] if number else []
        return operands if _is_sum(op) else []

    def _are_known(self, value: SSAValue, index: Index) -> bool:
        is_step_known = isinstance(Steps(self.plan).along(value, index, self.axis), int)
        return is_step_known or value in self.plan.storage.inductions or self._is_same(value)

    def _is_number(self, value: SSAValue, index: Index) -> bool:
        """Whether all elements along the axis are one number, in all iterations."""
        return Steps(self.plan).along(value, index, self.axis) == 0 and self._is_same(value)

    def _is_same(self, value: SSAValue) -> bool:
        return arguments_of(self.plan, [value], self.loop) == set()


def _is_sum(op: Operation) -> bool:
    declared = ops.declared(op)
    is_moved = declared.forwards and not declared.is_view(op)
    is_widened = isinstance(op, WIDENING) and is_offset(op.operands[0])
    return is_moved or is_widened or isinstance(op, arith.AddiOp | AddPtrOp)
