"""What loops and branches forward: the values that one comes from, and those that it becomes, without being computed.

%r = scf.for %i = ... iter_args(%x = %a) {           %x and %r come from %a and %y
  scf.yield %y }                                     %a, where it enters, and %y become %x and %r
%r = scf.if %c { scf.yield %a } else { scf.yield %b }            %r comes from %a and %b
%r = scf.while (%x = %a) { scf.condition(%c) %y } do {           %x comes from %a and %w
^bb0(%z): scf.yield %w }                                         %z and %r come from %y
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue, Use

_BOUNDS = 3  # operands of a loop before what it carries


def forwarded_from(value: SSAValue) -> Sequence[SSAValue]:
    """What a result of a loop or branch, or an argument of a loop's body, may be: first what enters; none of others."""
    op, index = value.owner, value.index
    if isinstance(op, Block):
        return _to_argument(op, index)
    if not op.regions:
        return ()  # as of most ops: `isinstance` is slow on their classes
    if isinstance(op, scf.ForOp):
        return _around(op, index)
    if isinstance(op, scf.IfOp):
        return [_end(region.block)[index] for region in op.regions]
    return [_end(op.before_region.block)[1 + index]] if isinstance(op, scf.WhileOp) else ()


def _to_argument(block: Block, index: int) -> Sequence[SSAValue]:
    loop = block.parent_op()
    if isinstance(loop, scf.ForOp):
        return _around(loop, index - 1) if index else ()
    if not isinstance(loop, scf.WhileOp):
        return ()
    before, after = loop.before_region.block, loop.after_region.block
    return (loop.arguments[index], _end(after)[index]) if block is before else [_end(before)[1 + index]]


def _around(loop: scf.ForOp, index: int) -> Sequence[SSAValue]:
    """What enters a loop, and what an iteration gives the next one."""
    return loop.iter_args[index], _end(loop.body.block)[index]


def _end(block: Block) -> Sequence[SSAValue]:
    assert block.last_op is not None
    return block.last_op.operands


def forwarded_to(use: Use) -> Sequence[SSAValue]:
    """What an operand becomes, in the body of a loop first; none where an op does something else with it."""
    op, index = use.operation, use.index
    if isinstance(op, scf.YieldOp):
        return _of_yield(op.parent_op(), index)
    if isinstance(op, scf.ForOp):
        return _carried(op, index - _BOUNDS) if index >= _BOUNDS else ()
    if isinstance(op, scf.WhileOp):
        return [op.before_region.block.args[index]]
    if isinstance(op, scf.ConditionOp) and index:
        loop = op.parent_op()
        return loop.after_region.block.args[index - 1], loop.results[index - 1]
    return ()


def _of_yield(parent: Operation, index: int) -> Sequence[SSAValue]:
    if isinstance(parent, scf.ForOp):
        return _carried(parent, index)
    return [parent.before_region.block.args[index] if isinstance(parent, scf.WhileOp) else parent.results[index]]


def _carried(loop: scf.ForOp, index: int) -> Sequence[SSAValue]:
    return loop.body.block.args[1 + index], loop.results[index]
