"""Loops in which a program may wait for another program, or for the host.

    while tl.atomic_cas(lock, 0, 1) != 0: pass              waits
    while tl.load(flag, volatile=True) == 0: pass           waits
    while tl.load(flag) == 0: pass                          waits: it is the same place every time
    while low < high: ... tl.load(x + middle) ...           does not: the loop itself decides what it reads

A loop waits if whether it goes on depends on what it reads of memory, and the program itself has no say in what that
is. Whoever runs programs one after the other, or fewer at a time than there are, has to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.ir.around import is_defined_in
from deuteron.ir.effects import GLOBAL, READ, own_effects
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.nested import nested_ops
from deuteron.ir.reached import reached


def waiting_loops(root: Operation) -> list[scf.WhileOp]:
    """The loops inside an op that may wait. What a function does that is called is not known here: it may."""
    return [op for op in nested_ops(root, scf.WhileOp) if _waits(op)]


def _waits(loop: scf.WhileOp) -> bool:
    return any(_reads_what_others_write(op, loop) for op in _ops_after_condition(loop))


def _reads_what_others_write(op: Operation, loop: scf.WhileOp) -> bool:
    """Whether an op reads in order, or writes what it reads, or reads the same place every time."""
    kinds = {effect.kind for effect in own_effects(op) if effect.resource is GLOBAL}
    if READ not in kinds:
        return False
    return kinds != {READ} or not any(is_defined_in(operand, loop) for operand in op.operands)


def _ops_after_condition(loop: scf.WhileOp) -> Iterator[Operation]:
    """The ops of the loop that its condition is computed by, in this iteration and in those before."""
    condition = loop.before_region.block.last_op.operands[0]
    for value in reached([condition], lambda value: _made_of(value, loop)):
        if isinstance(value.owner, Operation) and is_defined_in(value, loop):
            yield from nested_ops(value.owner)


def _made_of(value: SSAValue, loop: scf.WhileOp) -> Sequence[SSAValue]:
    """What a value is computed of inside the loop; of what a loop inside this one has, all that this is given."""
    if not is_defined_in(value, loop):
        return ()
    op = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    return forwarded_from(value) if op is loop else [operand for one in nested_ops(op) for operand in one.operands]
