"""Which values differ between programs that are neighbours along a dimension of the grid.

p = program_id(0)                       varies along 0
i = arange(0, 128)                      the same in all programs
x = load(x_ptr + i * n + p)             varies: its address does
y = load(y_ptr + i)                     does not: programs that run in step load it once
for ...: s = s + x                      what is carried varies if what it begins with does, or what is made of it
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.program import GetProgramIdOp


def varying_values(func: FuncOp, axis: int, row: SSAValue | None = None) -> set[SSAValue]:
    """The values of a function that depend on the program's id along an axis, or on where it is in a row of so many."""
    ops, varying, count = nested_ops(func), set(), -1
    while count != len(varying):  # as often as loops in loops carry what varies back
        count = len(varying)
        for op in ops:
            if not is_row_number(op, axis, row):
                varying.update(_made_varying(op, axis, varying))
    return varying


def _made_varying(op: Operation, axis: int, varying: set[SSAValue]) -> Sequence[SSAValue]:
    if isinstance(op, GetProgramIdOp):
        return op.results if op.axis.value.data == axis else ()
    if isinstance(op, scf.ForOp):
        return [value for carried in carried_by(op) if not varying.isdisjoint(carried) for value in carried[2:]]
    if isinstance(op, scf.IfOp):
        return [value for given in given_by(op) if not varying.isdisjoint((op.cond, *given)) for value in given[-1:]]
    is_same = varying.isdisjoint(op.operands) and not (isinstance(op, LoadOp) and is_in_branch(op, varying))
    return () if is_same else op.results


def is_row_number(op: Operation, axis: int, row: SSAValue | None) -> bool:
    """Whether an op numbers rows of so many programs along an axis, or several such rows together, if their product
    does not overflow.
    """
    if row is None or not isinstance(op, arith.DivSIOp) or not is_program_id(op.lhs, axis):
        return False
    return row in factors_of(op.rhs) and all(_is_known(factor) for factor in factors_of(op.rhs))


def factors_of(value: SSAValue) -> list[SSAValue]:
    """Of a product, or the value itself."""
    if not isinstance(value.owner, arith.MuliOp):
        return [value]
    return [factor for operand in value.owner.operands for factor in factors_of(operand)]


def _is_known(value: SSAValue) -> bool:
    """Whether it is known before a kernel begins."""
    return constant_value(value) is not None or isinstance(value.owner, Block)


def is_program_id(value: SSAValue, axis: int) -> bool:
    return isinstance(value.owner, GetProgramIdOp) and value.owner.axis.value.data == axis


def is_in_branch(op: Operation, varying: set[SSAValue]) -> bool:
    """Whether some programs come to an op and others do not."""
    around = op.parent_op()
    while not isinstance(around, FuncOp):
        if isinstance(around, scf.IfOp) and around.cond in varying:
            return True
        around = around.parent_op()
    return False


def carried_by(loop: scf.ForOp) -> list[tuple[SSAValue, ...]]:
    """For each value that a loop carries: the first, the next, it in the loop, and after it."""
    block = loop.body.block
    return list(zip(loop.iter_args, block.last_op.operands, block.args[1:], loop.results, strict=True))


def given_by(branch: scf.IfOp) -> list[tuple[SSAValue, ...]]:
    """For each result of a branch: what its regions give, and it."""
    yields = [region.block.last_op.operands for region in branch.regions if region.blocks]
    return list(zip(*yields, branch.results, strict=True)) if branch.results else []
