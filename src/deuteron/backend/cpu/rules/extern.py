"""Functions of libdevice: expanded in line, lane by lane."""

from __future__ import annotations

from deuteron.analysis.extern_functions import name_of
from deuteron.backend.cpu.algebra import lanewise
from deuteron.backend.cpu.context import Context, Rule
from deuteron.backend.cpu.fragment import Fragment
from deuteron.backend.math.number import FloatUnit
from deuteron.ir.tt.extern import ExternElementwiseOp


def extern_elementwise(ctx: Context, op: ExternElementwiseOp, *operands: Fragment) -> Fragment:
    from deuteron.backend.math.extern import lower  # deferred: 15 modules, for what few kernels have

    name, unit = name_of(op), FloatUnit(ctx.target.fuses, ctx.target.rounds, doubles=True)
    return lanewise(ctx.emitter, lambda b, *values: lower(b, name, op.symbol.data, values, unit), *operands)


RULES: dict[str, Rule] = {"tt.extern_elementwise": extern_elementwise}
