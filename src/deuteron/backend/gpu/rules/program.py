"""The program's place in the grid, and barriers."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.llvm.types import Value


def get_program_id(ctx: Context, op: Operation) -> Value:
    return ctx.isa.program_id(ctx.b, op.axis.value.data)


def get_num_programs(ctx: Context, op: Operation) -> Value:
    return ctx.isa.num_programs(ctx.b, op.axis.value.data)


def barrier(ctx: Context, op: Operation) -> None:
    ctx.barrier()


RULES: dict[str, Rule] = {
    "tt.get_program_id": get_program_id,
    "tt.get_num_programs": get_num_programs,
    "ttg.barrier": barrier,
}
