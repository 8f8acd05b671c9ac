"""Copies a kernel's function for planning, and gives a value of its own to what has to be in memory in its own right.

    for ...: a, b = b, a        yields copies taken at the start of the body: no order of writes can go wrong
    tl.dot(i8_tile, ...)        multiplies copies, which are widened to i32

A copy is a `tt.broadcast` to the same shape.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.core import BlockArgument
from xdsl.rewriter import InsertPoint

from deuteron.backend.cpu.plan.inductions import find_inductions
from deuteron.errors import UsageError
from deuteron.ir.builder import Builder
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.shape import BroadcastOp
from deuteron.ir.types import is_integer, is_tile, shape_of


def kernel_of(module: ModuleOp) -> FuncOp:
    """A copy of the kernel, the only public function, prepared for planning."""
    kernels = [op for op in module.clone().body.block.ops if isinstance(op, FuncOp) and _is_public(op)]
    if len(kernels) != 1:
        raise UsageError(f"a module needs exactly one public function, the kernel; this one has {len(kernels)}")
    for op in list(kernels[0].walk()):
        if isinstance(op, scf.ForOp):
            _copy_yielded(op)
        elif op.name == "tt.dot":
            _copy_operands(op)
    return kernels[0]


def _is_public(op: FuncOp) -> bool:
    return op.sym_visibility is None or op.sym_visibility.data == "public"


def _copy_yielded(op: scf.ForOp) -> None:
    """Arguments of the loop that become other arguments, and what has no memory of its own."""
    block, terminator = op.body.block, op.body.block.last_op
    inductions = find_inductions(op)
    for number, value in enumerate(terminator.operands):
        if number in inductions or not is_tile(value.type):
            continue
        if isinstance(value, BlockArgument) and value.owner is block:
            terminator.operands[number] = _copy(value, block.first_op)
        elif isinstance(value.owner, scf.ForOp) and value.owner.parent_block() is block:
            terminator.operands[number] = _copy(value, terminator)


def _copy_operands(op: Operation) -> None:
    for number in (0, 1):
        value = op.operands[number]
        if is_integer(value.type) or _has_no_buffer(value):
            op.operands[number] = _copy(value, op)


def _has_no_buffer(value: SSAValue) -> bool:
    """Whether the tile is a loop's induction, or part of another tile."""
    owner = value.owner
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        return isinstance(loop, scf.ForOp) and value.index - 1 in find_inductions(loop)
    return owner.name == "tt.split" or (isinstance(owner, scf.ForOp) and value.index in find_inductions(owner))


def _copy(value: SSAValue, before: Operation) -> SSAValue:
    builder = Builder(InsertPoint.before(before), before.location)
    return builder.value(BroadcastOp(value, shape_of(value.type)))
