"""Values that a loop carries besides those that it has.

argument = new_argument(loop, i32, "index")             in the body
loop = carry(loop, [entering], [following])             what enters, and what each iteration gives the next
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, SSAValue

from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.passes.rewrite import replace


def is_innermost(loop: scf.ForOp) -> bool:
    """Whether there is no loop in it."""
    return not any(inner is not loop and isinstance(inner, scf.ForOp | scf.WhileOp) for inner in nested_ops(loop))


def has_iteration(b: Builder, loop: scf.ForOp) -> SSAValue | None:
    """Whether a loop has any, where a step that is not positive gives none; None: it certainly has."""
    begin, end, step = (constant_value(value) for value in (loop.lb, loop.ub, loop.step))
    is_positive = step is not None and step > 0
    if is_positive and begin is not None and end is not None and begin < end:
        return None
    is_below = b.value(CmpIOp(loop.lb, loop.ub, "slt"))
    if is_positive:
        return is_below
    return b.value(arith.AndIOp(is_below, b.value(CmpIOp(loop.step, b.constant(0, loop.step.type), "sgt"))))


def new_argument(loop: scf.ForOp, type: Attribute, name: str | None) -> SSAValue:
    """One more value that a loop carries; `carry` says what enters."""
    block = loop.body.block
    argument = block.insert_arg(type, len(block.args))
    argument.name_hint, argument.location = name, loop.location
    return argument


def carry(loop: scf.ForOp, entering: Sequence[SSAValue], following: Sequence[SSAValue]) -> scf.ForOp:
    """Build a loop anew that carries more: what enters, and what each iteration gives the next."""
    terminator = loop.body.block.last_op
    terminator.operands = [*terminator.operands, *following]
    region = loop.detach_region(loop.body)
    new = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *entering], region)
    new.attributes |= loop.attributes
    new.location = loop.location
    loop.parent.insert_op_before(new, loop)
    for result, old in zip(new.results, loop.results, strict=False):
        result.name_hint = old.name_hint
    replace(loop, new.results[: len(loop.results)])
    return new
