"""The program's place in the grid."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.cpu.context import Context
from deuteron.backend.cpu.fragment import Fragment, Uniform


def program_id(ctx: Context, op: Operation) -> Fragment:
    return Uniform(ctx.program[f"pid{op.axis.value.data}"], 0)


def num_programs(ctx: Context, op: Operation) -> Fragment:
    return Uniform(ctx.program[f"grid{op.axis.value.data}"], 0)


RULES = {"tt.get_program_id": program_id, "tt.get_num_programs": num_programs}
