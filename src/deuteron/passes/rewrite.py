"""Replaces ops. Passes change IR through these functions and `Builder.before(op)`, so that a new op has the location of
the op it stands for, and a value that replaces a named one takes over its name.

    new = Builder.before(op).value(AddPtrOp(base, offset))
    replace(op, [new])
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from deuteron.ir.effects import is_removable


class Values(dict[SSAValue, SSAValue]):
    """What values are in a clone of the ops that give them; those from outside are themselves."""

    def of(self, value: SSAValue) -> SSAValue:
        return self.get(value, value)


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Use `values` instead of the results of an op, and erase it."""
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    erase(op)


def erase(op: Operation) -> None:
    """Erase an op whose results are not used."""
    op.detach()
    op.erase()


def erase_unused(ops: Sequence[Operation]) -> None:
    """Erase those that nobody needs, the last first, so that what only they used goes with them."""
    for op in reversed(ops):
        if _is_unused(op):
            erase(op)


def _is_unused(op: Operation) -> bool:
    for result in op.results:  # `all` would call for each
        if result.first_use is not None:
            return False
    return not op.has_trait(IsTerminator) and is_removable(op)


def clone_on(op: Operation, operands: Sequence[SSAValue]) -> Operation:
    """The op on other operands, place by place: of one value that is two operands each may become another."""
    clone = op.clone()
    clone.operands = operands
    return clone


def inline_block(block: Block, arguments: Sequence[SSAValue], before: Operation) -> list[SSAValue]:
    """Move the ops of a block before an op; gives the operands of its terminator, which goes."""
    for parameter, argument in zip(block.args, arguments, strict=True):
        parameter.replace_all_uses_with(argument)
    terminator = block.last_op
    assert terminator is not None and before.parent is not None
    outcome = list(terminator.operands)
    erase(terminator)
    ops = list(block.ops)
    for op in ops:
        op.detach()
    before.parent.insert_ops_before(ops, before)
    return [arguments[block.args.index(v)] if v in block.args else v for v in outcome]
