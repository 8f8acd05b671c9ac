"""Rules for block pointers: `tt.make_tensor_ptr`, `tt.advance`. Loads and stores through them are in memory.py.

%p = make_tensor_ptr %base, [%m, %n], [%s, %one], [%i, %j]     Described(base, (m, n), (s, 1), offsets=(i, j))
"""

from __future__ import annotations

from deuteron.interpreter.described import Described
from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.block_pointer import AdvanceOp, MakeTensorPtrOp

RULES = RuleTable()


@RULES.on(MakeTensorPtrOp)
def make_tensor_ptr(ctx, op, base, *sizes):
    numbers, rank = tuple(map(int, sizes)), len(op.shape)
    return Described(int(base), numbers[:rank], numbers[rank : 2 * rank], numbers[2 * rank :])


@RULES.on(AdvanceOp)
def advance(ctx, op, pointer, *steps):
    return pointer.moved(tuple(map(int, steps)))
