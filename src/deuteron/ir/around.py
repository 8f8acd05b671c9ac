"""What is around an op: loops and branches, the innermost first; and what is made in them.

    scf.for %i = ... {                 loops_around(the addi)     the scf.for
      scf.if %c {                      ops_around(the addi)       the scf.if, the scf.for, tt.func, builtin.module
        %x = arith.addi %i, %n         is_defined_in(%i, the scf.for), as %x is; %n is not

Which op of a block another one is in, xDSL tells: `block.find_ancestor_op_in_block(op)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

Loop = scf.ForOp | scf.WhileOp


def ops_around(op: Operation) -> Iterator[Operation]:
    """Those that an op is in, without itself."""
    while (op := op.parent_op()) is not None:
        yield op


def loops_around(op: Operation) -> Iterator[Loop]:
    """The loops among them."""
    return (around for around in ops_around(op) if isinstance(around, Loop))


def is_defined_in(value: SSAValue, ancestor: Operation) -> bool:
    """Whether a value is a result or an argument of something inside an op."""
    return value.owner is not ancestor and ancestor.is_ancestor(value.owner)
