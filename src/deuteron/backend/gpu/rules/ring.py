"""The next place in a ring of buffers: one step further, and around.

%i1 = i + 1 == slots ? 0 : i + 1
%p1 = i1 == 0 ? p ^ 1 : p
"""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.llvm.types import Value, const


def ring_next(ctx: Context, op: Operation, index: Value, phase: Value | None = None) -> Value | list[Value]:
    following, zero = ctx.b.add(index, const("i32", 1)), const("i32", 0)
    is_end = ctx.b.icmp("eq", following, const("i32", op.num_slots))
    following = ctx.b.select(is_end, zero, following)
    if phase is None:
        return following
    begins = ctx.b.icmp("eq", following, zero)
    return [following, ctx.b.select(begins, ctx.b.xor(phase, const("i32", 1)), phase)]


RULES: dict[str, Rule] = {"ttg.ring_next": ring_next}
