"""The program's place in the grid, and barriers.

tt.get_program_id x        %ctaid.x; where a program is a cluster of blocks, %clusterid.x
"""

from __future__ import annotations

from xdsl.ir import Operation

from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.llvm.types import Value


def program_id(ctx: Context, axis: int) -> Value:
    """The program's number along an axis of the grid."""
    return _grid_register(ctx, "", axis)


def _grid_register(ctx: Context, prefix: str, axis: int) -> Value:
    unit = "cluster" if ctx.options.num_ctas > 1 else "cta"
    return ctx.b.call("i32", f"llvm.nvvm.read.ptx.sreg.{prefix}{unit}id.{'xyz'[axis]}")


def get_program_id(ctx: Context, op: Operation) -> Value:
    return program_id(ctx, op.axis.value.data)


def get_num_programs(ctx: Context, op: Operation) -> Value:
    return _grid_register(ctx, "n", op.axis.value.data)


def barrier(ctx: Context, op: Operation) -> None:
    ctx.barrier()


RULES: dict[str, Rule] = {
    "tt.get_program_id": get_program_id,
    "tt.get_num_programs": get_num_programs,
    "ttg.barrier": barrier,
}
