"""The program's place in the grid: tt.get_program_id, tt.get_num_programs; and in time: tt.global_timer."""

from __future__ import annotations

from deuteron import language as tl
from deuteron.frontend.context import Context
from deuteron.frontend.semantics.types import tensor
from deuteron.frontend.values import Tensor, Value, describe
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp, GlobalTimerOp
from deuteron.language import program as stubs
from deuteron.language.types import int32, int64

LANES = 32  # of a warp


def program_id(ctx: Context, axis: int) -> Tensor:
    return tensor(ctx, GetProgramIdOp(_axis(ctx, "tl.program_id", axis)), int32)


def num_programs(ctx: Context, axis: int) -> Tensor:
    return tensor(ctx, GetNumProgramsOp(_axis(ctx, "tl.num_programs", axis)), int32)


def globaltimer(ctx: Context) -> Tensor:
    return tensor(ctx, GlobalTimerOp(), int64)


def num_warps(ctx: Context) -> int:
    return ctx.asked.num_warps


def num_threads(ctx: Context) -> int:
    return ctx.asked.num_warps * LANES


def _axis(ctx: Context, name: str, axis: Value) -> int:
    if not isinstance(axis, int) or axis not in (0, 1, 2):
        raise ctx.error(f"{name} takes axis 0, 1 or 2 of the grid, got {describe(axis)}.")
    return int(axis)


RULES = {
    tl.program_id: program_id,
    tl.num_programs: num_programs,
    stubs.globaltimer: globaltimer,
    stubs.num_warps: num_warps,
    stubs.num_threads: num_threads,
}
