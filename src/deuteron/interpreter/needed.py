"""Which ops of a block something depends on.

%zero = arith.constant dense<0> : tensor<1xi1>       left out: pure, and only what is left out uses it
%wide = arith.addf %x, %zero ...                     left out: a function of the user asked for its type only
%sum = arith.addf %x, %y
tt.reduce.return %sum
"""

from __future__ import annotations

from xdsl.ir import Block, Operation

from deuteron.ir.effects import is_pure


def needed_ops(block: Block) -> list[Operation]:
    """The ops of a block, in order, without those that only compute what no other op of the program uses."""
    dropped: set[Operation] = set()
    for op in reversed(list(block.ops)):
        users = (use.operation for result in op.results for use in result.uses)
        if op is not block.last_op and not op.regions and is_pure(op) and all(user in dropped for user in users):
            dropped.add(op)
    return [op for op in block.ops if op not in dropped]
