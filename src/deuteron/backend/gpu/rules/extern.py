"""Functions of libdevice: a target's own, where it has better ones, else expanded in line."""

from __future__ import annotations

from deuteron.analysis.extern_functions import name_of
from deuteron.backend.gpu.context import Context, Rule
from deuteron.backend.gpu.fragment import Operand
from deuteron.backend.gpu.rules.elementwise import each, each_vector
from deuteron.backend.llvm.types import Value
from deuteron.backend.math.functions import BRANCHING
from deuteron.ir.tt.extern import ExternElementwiseOp


def extern_elementwise(ctx: Context, op: ExternElementwiseOp, *operands: Operand) -> Operand:
    from deuteron.backend.math.extern import lower  # deferred: 15 modules, for what few kernels have

    name, own, unit = name_of(op), ctx.isa.extern_functions, ctx.isa.float_unit

    def emit(*values: Value) -> Value:
        return lower(ctx.b, name, op.symbol.data, values, unit, own)

    return each_vector(ctx.b, emit, *operands) if name in BRANCHING else each(emit, *operands)


RULES: dict[str, Rule] = {"tt.extern_elementwise": extern_elementwise}
