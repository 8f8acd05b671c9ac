"""Functions of libdevice: expanded in line, lane by lane."""

from __future__ import annotations

from collections.abc import Callable

from deuteron.analysis.extern_functions import name_of
from deuteron.backend.cpu.algebra import lanewise
from deuteron.backend.cpu.by_target import BY_TARGET
from deuteron.backend.cpu.context import Context, Rule
from deuteron.backend.cpu.elements import register_type
from deuteron.backend.cpu.fragment import Fragment
from deuteron.backend.cpu.pieces import has_pieces
from deuteron.backend.cpu.target import CPUTarget
from deuteron.backend.llvm.types import Value
from deuteron.backend.math.number import FloatUnit, Function, Number
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.types import element_type_of


def extern_elementwise(ctx: Context, op: ExternElementwiseOp, *operands: Fragment) -> Fragment:
    from deuteron.backend.math.extern import lower  # deferred: 15 modules, for what few kernels have

    name, unit = name_of(op), FloatUnit(ctx.target.fuses, ctx.target.rounds, doubles=True)
    own = {name: _of_target(BY_TARGET[name], ctx.target)} if _is_by_target(ctx, op, name) else {}
    return lanewise(ctx.emitter, lambda b, *values: lower(b, name, op.symbol.data, values, unit, own), *operands)


def _is_by_target(ctx: Context, op: ExternElementwiseOp, name: str) -> bool:
    """tanh only by pieces: else libdevice's is more accurate than the language's."""
    type = register_type(element_type_of(op.results[0].type))
    return name in BY_TARGET and (name != "tanh" or has_pieces(type, ctx.target))


def _of_target(function: Callable[..., Value], target: CPUTarget) -> Function:
    def emit(x: Number) -> Number:
        return x.make(function(x.b, x.value, target))

    return emit


RULES: dict[str, Rule] = {"tt.extern_elementwise": extern_elementwise}
