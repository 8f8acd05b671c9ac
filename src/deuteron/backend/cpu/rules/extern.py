"""Functions of libdevice: expanded in line, lane by lane."""

from __future__ import annotations

from deuteron.analysis.extern_functions import name_of
from deuteron.backend.cpu.algebra import lanewise
from deuteron.backend.cpu.context import Context, Rule
from deuteron.backend.cpu.fragment import Fragment
from deuteron.backend.cpu.math.atan_pieces import atan
from deuteron.backend.cpu.math.by_target import BY_TARGET
from deuteron.backend.cpu.math.pieces import by_registers, has_pieces
from deuteron.backend.cpu.memory.elements import register_type
from deuteron.backend.math.number import FloatUnit, Function
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.types import element_type_of


def extern_elementwise(ctx: Context, op: ExternElementwiseOp, *operands: Fragment) -> Fragment:
    from deuteron.backend.math.extern import lower  # deferred: 15 modules, for what few kernels have

    name, unit = name_of(op), FloatUnit(ctx.target.fuses, ctx.target.rounds, doubles=True)
    own = {name: function} if (function := _own(ctx, op, name)) else {}
    return lanewise(ctx.emitter, lambda b, *values: lower(b, name, op.symbol.data, values, unit, own), *operands)


def _own(ctx: Context, op: ExternElementwiseOp, name: str) -> Function | None:
    """tanh only by pieces: else libdevice's is more accurate than the language's."""
    has_tables = has_pieces(register_type(element_type_of(op.results[0].type)), ctx.target)
    if name == "atan" and has_tables:
        return lambda x: x.make(by_registers(x.b, x.value, atan))
    if name not in BY_TARGET or (name == "tanh" and not has_tables):
        return None
    return lambda x: x.make(BY_TARGET[name](x.b, x.value, ctx.target))


RULES: dict[str, Rule] = {"tt.extern_elementwise": extern_elementwise}
