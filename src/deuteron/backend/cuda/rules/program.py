"""The program's place in the grid, and barriers."""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.cuda.context import Context, Rule
from deuteron.backend.llvm.types import Value


def _grid_register(name: str) -> Rule:
    def rule(ctx: Context, op: Operation) -> Value:
        return ctx.b.call("i32", f"llvm.nvvm.read.ptx.sreg.{name}.{'xyz'[op.axis.value.data]}")

    return rule


def barrier(ctx: Context, op: Operation) -> None:
    ctx.barrier()


RULES: dict[str, Rule] = {
    "tt.get_program_id": _grid_register("ctaid"),
    "tt.get_num_programs": _grid_register("nctaid"),
    "ttg.barrier": barrier,
}
