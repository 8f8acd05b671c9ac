"""What it costs to compute an element of a tile again, in about the time of an addition.

    x = tl.load(p + i)          2, of neighbours in memory, which the first cache still has
    x = tl.load(p + j // 2)     8
    tl.exp(x * 2)               8 + 1 + 16
    i * stride + j              0.5: integer arithmetic on indices is mostly done once for a whole vector
    i // 128                    0.25 as well, 8 by what is not known
    rows[:, None] + j           0.5: what is broadcast to n elements is kept itself, or done once for n of them

Tiles that are made by an algorithm (dot, scan), and views, are in memory anyway and cost nothing to read again.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.memo import evaluate
from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import identity_index
from deuteron.backend.cpu.plan.ops.declaration import INDEX_WEIGHT
from deuteron.ir.types import is_tile, num_elements_of, shape_of

# A tile is kept where computing an element again costs this much, as loading it does. Estimated, not measured.
WORTH_KEEPING = 8.0
_LOADED_AGAIN = 2.0
_LIMIT = 1000.0  # so that costs, which count what is shared several times, stay finite


class Costs:
    """Costs of lazy tiles, remembered. What several operands have in common is counted several times. `loads_again`
    says which loads are as cheap as that of a tile that is kept, `divides_once` which divisions as an addition of
    indices.
    """

    def __init__(self, loads_again: Callable[[Operation], bool], divides_once: Callable[[Operation], bool]) -> None:
        self._known: dict[SSAValue, float] = {}
        self._loads_again, self._divides_once = loads_again, divides_once

    def of(self, value: SSAValue) -> float:
        return evaluate(value, self._known, _inputs, self._compute)

    def _compute(self, value: SSAValue) -> float:
        operands = sum(self._known[v] for v in _inputs(value)) * _share(value)
        return min(self._weight(value) + operands, _LIMIT)

    def _weight(self, value: SSAValue) -> float:
        if not _is_computed(value):
            return 0.0
        declared = ops.declared(value.owner)
        if declared.reads_memory(value.owner) and self._loads_again(value.owner):
            return _LOADED_AGAIN
        if self._divides_once(value.owner):
            return INDEX_WEIGHT
        return declared.weight(value.owner)


def _inputs(value: SSAValue) -> list[SSAValue]:
    op = value.owner
    if not _is_computed(value) or ops.declared(op).is_view(op):
        return []
    parts = ops.declared(op).operands_at(op, identity_index(shape_of(value.type)))
    return [operand for operand, _ in parts if is_tile(operand.type)]


def _share(value: SSAValue) -> float:
    """How many elements of its operands a tile is made of, for each of its own."""
    op = value.owner
    if not _is_computed(value) or not ops.declared(op).repeats(op):
        return 1.0
    return num_elements_of(op.operands[0].type) / num_elements_of(value.type)


def _is_computed(value: SSAValue) -> bool:
    """Whether a tile is computed where it is read."""
    op = value.owner
    return isinstance(op, Operation) and is_tile(value.type) and ops.declared(op).is_lazy(op)
