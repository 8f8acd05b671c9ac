"""Rules for the program's place in the grid, `tt.get_program_id`, `tt.get_num_programs`, and in time."""

from __future__ import annotations

import time

import numpy as np

from deuteron.ir.rule_table import RuleTable
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp, GlobalTimerOp

RULES = RuleTable()


@RULES.on(GetProgramIdOp)
def get_program_id(ctx, op):
    return np.int32(ctx.program_id[op.axis.value.data])


@RULES.on(GetNumProgramsOp)
def get_num_programs(ctx, op):
    return np.int32(ctx.grid[op.axis.value.data])


@RULES.on(GlobalTimerOp)
def global_timer(ctx, op):
    return np.int64(time.monotonic_ns())
