"""Finds loads whose lanes may be neighbours in all rows of a tile, or in none, which is known before its nest.

    columns = (pid * 64 + tl.arange(0, 64)) % N
    b = tl.load(b_ptr + rows[:, None] * stride + columns[None, :])          acc = tl.dot(a, b, acc)

Only the last tile of a row has columns that do not follow one another. So the columns are looked at once, before the
rows, and where they follow one another each row is loaded as it would be without `% N`; else each vector of each row
looks at its own lanes (`loops.py`).

That is for operands of products, since it is code for the nest twice, and for addresses that are sums: of what is the
same along the dimension that is vectorised, and of what is the same along all others.
"""

from __future__ import annotations

from collections import Counter
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan import ops
from deuteron.backend.cpu.plan.indices import Index, running
from deuteron.backend.cpu.plan.items import Nest
from deuteron.backend.cpu.plan.ops.declaration import IRREGULAR
from deuteron.backend.cpu.plan.ops.elementwise import WIDENING, is_offset
from deuteron.backend.cpu.plan.roots import Keep
from deuteron.backend.cpu.plan.schedule import Plan
from deuteron.backend.cpu.plan.vectors.steps import Steps
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import AddPtrOp

_LEAST_ROWS = 8  # of fewer there is little to gain; not measured


def find_neighbours(plan: Plan, nest: Nest, axis: int) -> dict[Operation, Index]:
    """The loads of a nest, each with its index, of which it has to be looked at; none if that is not known of any."""
    if prod(nest.shape) < _LEAST_ROWS * nest.shape[axis] or not all(_is_operand(root) for root in nest.roots):
        return {}
    steps = Steps(plan)
    taken = [load for root in nest.roots for load in plan.reader.reads(root).loads]
    found = {load: index for load, index in taken if steps.along(load.ptr, index, axis) == IRREGULAR}
    counts = Counter(load for load, _ in taken)
    is_taken_once = all(counts[load] == 1 and running(index) == index for load, index in found.items())
    known = is_taken_once and all(_is_sum(plan, load.ptr, index, axis) for load, index in found.items())
    return found if known else {}


def _is_operand(root: object) -> bool:
    return (
        isinstance(root, Keep)
        and root.value is not None
        and any(isinstance(use.operation, DotOp) and use.index < 2 for use in root.value.uses)
    )


def _is_sum(plan: Plan, value: SSAValue, index: Index, axis: int) -> bool:
    """Whether a tile at an index is a sum of tiles of which each changes along the axis alone, or not along it."""
    axes = {entry for entry in running(index) if entry is not None}
    if axis not in axes or axes == {axis}:
        return True
    if value in plan.storage.inductions:
        return _is_sum(plan, plan.storage.inductions[value].initial, index, axis)
    op = value.owner
    if value in plan.places or not isinstance(op, Operation):
        return False
    declared = ops.declared(op)
    is_moved = declared.forwards and not declared.is_view(op)
    is_widened = isinstance(op, WIDENING) and is_offset(op.operands[0])
    if not (is_moved or is_widened or isinstance(op, arith.AddiOp | AddPtrOp)):
        return False
    return all(_is_sum(plan, operand, at, axis) for operand, at in declared.operands_at(op, index))
