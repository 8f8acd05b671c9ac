"""Rows that a program reads again in each iteration of a loop: all that run at once want theirs in the L2 until then.

    row = base + program_id(0) * n
    for _ in range(16):
        for start in range(0, n, 8192):
            total += tl.load(row + start + i)       again: nothing of the address changes with the outer loop

An address that is loaded or chosen in the outer loop is taken to change. What is at the same address in all programs
(weights) fills the L2 once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from deuteron.ir.effects import is_pure
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.program import GetProgramIdOp
from deuteron.ir.types import is_tile


def reads_rows_again(func: FuncOp) -> bool:
    """Whether a loop in a loop of a function loads tiles of such rows."""
    return any(_is_again(load, outer) for outer in nested_ops(func, scf.ForOp) for load in _loads_in_inner_loops(outer))


def _loads_in_inner_loops(outer: scf.ForOp) -> list[LoadOp]:
    inner = [loop for loop in nested_ops(outer, scf.ForOp) if loop is not outer]
    return [load for loop in inner for load in nested_ops(loop, LoadOp) if is_tile(load.result.type)]


def _is_again(load: LoadOp, outer: scf.ForOp) -> bool:
    values = list(reached([load.ptr], _made_from))
    depends_on_program = any(isinstance(value.owner, GetProgramIdOp) for value in values)
    return depends_on_program and not any(_may_change(value, outer) for value in values)


def _made_from(value: SSAValue) -> Sequence[SSAValue]:
    if forwarded := forwarded_from(value):
        return forwarded
    if not isinstance(value.owner, Block):
        return value.owner.operands
    loop = value.owner.parent_op()
    return (loop.lb, loop.step) if isinstance(loop, scf.ForOp) else ()


def _may_change(value: SSAValue, outer: scf.ForOp) -> bool:
    """Whether a value differs between iterations of a loop, of what it is made of apart."""
    if isinstance(value.owner, Block):
        op = value.owner.parent_op()
        return op is outer or (outer.is_ancestor(op) and not isinstance(op, scf.ForOp))
    op = value.owner
    if op is outer or not outer.is_ancestor(op) or isinstance(op, scf.ForOp):
        return False
    return bool(op.regions) or not is_pure(op)
