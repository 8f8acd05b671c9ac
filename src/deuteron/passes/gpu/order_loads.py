"""Issues loads that wait for nothing before loads whose addresses or masks other loads give.

    %row = tt.load %rows                            %row = tt.load %rows
    %cos = tt.load (%table + %row)          ->      %x = tt.load %p
    %x = tt.load %p                                 %cos = tt.load (%table + %row)

A thread issues in order: where it waits for the row, all that comes after it waits as well, and ptxas keeps loads in
their order. So memory answers %x and %row together, not one after the other. Of several loads in a row, those that wait
for fewer come first. Nothing moves over what threads exchange, multiply or store, so that no more is held there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.effects import is_pure
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.inference import is_flexible
from deuteron.ir.types import is_tile
from deuteron.passes.optimisation import Optimisation


@dataclass(frozen=True)
class OrderLoads(Optimisation):
    """Moves loads before those that wait for more."""

    name = "order-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in dict.fromkeys(load.parent for load in nested_ops(op, LoadOp)):
            _order(block)


def _order(block: Block) -> None:
    num_waited: dict[SSAValue, int] = {}  # loads, one after the other, that a value waits for
    passed: list[tuple[int, LoadOp]] = []  # that others may be moved to, those that wait for fewer first
    for op in list(block.ops):
        waits = max((num_waited.get(operand, 0) for operand in op.operands), default=0)
        num_waited.update(dict.fromkeys(op.results, waits + isinstance(op, LoadOp)))
        if not _may_be_passed(op):
            passed = []
        elif isinstance(op, LoadOp):
            place = next((place for place, (most, _) in enumerate(passed) if most > waits), len(passed))
            if place < len(passed):
                _move(op, passed[place][1])
            passed.insert(place, (waits, op))


def _may_be_passed(op: Operation) -> bool:
    if isinstance(op, LoadOp):
        return not op.is_volatile.value.data
    of_scalars = not op.regions and not any(is_tile(value.type) for value in (*op.operands, *op.results))
    return (of_scalars or is_flexible(op) or isinstance(op, ConvertLayoutOp)) and is_pure(op)


def _move(load: LoadOp, first: LoadOp) -> None:
    """Move a load before an earlier one, and what its operands are computed by since then."""
    needed, values = [load], set(load.operands)
    for op in _ops_between(first, load):
        if values & {*op.results}:
            needed.append(op)
            values |= {*op.operands}
    for op in reversed(needed):
        op.detach()
        first.parent.insert_op_before(op, first)


def _ops_between(first: Operation, last: Operation) -> Iterator[Operation]:
    """From the last one backwards."""
    while (last := last.prev_op) is not first:
        yield last
