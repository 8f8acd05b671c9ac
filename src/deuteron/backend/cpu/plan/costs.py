"""What it costs to compute an element of a tile again, in about the time of an addition.

    x = tl.load(p + i)          8
    tl.exp(x * 2)               8 + 1 + 16
    i * stride + j              0.5: integer arithmetic on indices is mostly done once for a whole vector

Tiles that are made by an algorithm (dot, reduce) are in memory anyway and cost nothing to read again.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan import effects, indices
from deuteron.backend.cpu.plan.memo import evaluate
from deuteron.ir.types import is_float, is_integer, is_tile

WORTH_KEEPING = 8.0
_COSTLY = 16.0
_LIMIT = 1000.0

_WEIGHTS = {
    "tt.load": 8.0,
    "arith.divf": 8.0,
    "arith.remf": 16.0,
    "arith.divsi": 8.0,
    "arith.divui": 8.0,
    "arith.remsi": 8.0,
    "arith.remui": 8.0,
    "tt.precise_divf": 8.0,
    "tt.precise_sqrt": 8.0,
    "math.sqrt": 8.0,
    "math.absf": 1.0,
    "math.fma": 1.0,
    "math.floor": 1.0,
    "math.ceil": 1.0,
}


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
    if not isinstance(op, Operation) or not effects.is_lazy(op) or not is_tile(value.type):
        return []
    return [operand for operand in op.operands if is_tile(operand.type)]


def _weight(value: SSAValue) -> float:
    op = value.owner
    if not isinstance(op, Operation) or not is_tile(value.type) or not effects.is_lazy(op) or indices.forwards(op):
        return 0.0
    if op.name in _WEIGHTS:
        return _WEIGHTS[op.name]
    if op.name.startswith("math.") and is_float(value.type):
        return _COSTLY
    return 0.25 if is_integer(value.type) or op.name in ("arith.constant", "tt.addptr") else 1.0
