"""What ops do, remembered, for a pass that asks again and again of ops with regions.

    scf.if        asked: is it pure?       each of the ops in it is asked once
      scf.if      asked before             its answer is part of that of the one around it

Asked anew, 300 branches in each other are walked 300 times. What is in an op that was asked about has to stay as it is:
a pass works from the inside out.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from deuteron.analysis.memo import evaluate
from deuteron.ir.effects import READ, Kind, ops_that_add, own_effects


class KnownEffects:
    """Answers as those of ir/effects.py."""

    def __init__(self) -> None:
        self._kinds: dict[Operation, frozenset[Kind]] = {}

    def is_pure(self, op: Operation) -> bool:
        return not self._of(op)

    def is_removable(self, op: Operation) -> bool:
        return self._of(op) <= {READ}

    def _of(self, op: Operation) -> frozenset[Kind]:
        return evaluate(op, self._kinds, _with_regions, self._compute) if op.regions else _own(op)

    def _compute(self, op: Operation) -> frozenset[Kind]:
        return _own(op).union(*(self._kinds[one] if one.regions else _own(one) for one in ops_that_add(op)))


def _own(op: Operation) -> frozenset[Kind]:
    return frozenset(effect.kind for effect in own_effects(op))


def _with_regions(op: Operation) -> Iterator[Operation]:
    return (one for one in ops_that_add(op) if one.regions)
