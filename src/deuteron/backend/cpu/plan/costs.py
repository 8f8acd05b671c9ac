"""What it costs to compute an element of a tile again, in about the time of an addition.

    x = tl.load(p + i)          8
    tl.exp(x * 2)               8 + 1 + 16
    i * stride + j              0.5: integer arithmetic on indices is mostly done once for a whole vector

Tiles that are made by an algorithm (dot, reduce) are in memory anyway and cost nothing to read again.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.memo import evaluate
from deuteron.ir.types import is_tile

# A tile is kept where computing an element again costs this much, as loading it does. Estimated, not measured.
WORTH_KEEPING = 8.0
_LIMIT = 1000.0  # so that costs, which count what is shared several times, stay finite


class Costs:
    """Costs of lazy tiles, remembered. What several operands have in common is counted several times."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, float] = {}

    def of(self, value: SSAValue) -> float:
        return evaluate(value, self._known, _inputs, self._compute)

    def _compute(self, value: SSAValue) -> float:
        return min(_weight(value) + sum(self._known[v] for v in _inputs(value)), _LIMIT)


def _inputs(value: SSAValue) -> list[SSAValue]:
    op = value.owner
    if not isinstance(op, Operation) or not ops.declared(op).is_lazy(op) or not is_tile(value.type):
        return []
    return [operand for operand in op.operands if is_tile(operand.type)]


def _weight(value: SSAValue) -> float:
    op = value.owner
    is_computed = isinstance(op, Operation) and is_tile(value.type) and ops.declared(op).is_lazy(op)
    return ops.declared(op).weight(op) if is_computed else 0.0
