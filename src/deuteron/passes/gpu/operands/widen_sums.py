"""Carries what dots of a loop sum up in f16 as f32, which is what tensor cores sum up in, and rounds it after the loop.

    %r = scf.for ... iter_args(%c = %zero)              %r = scf.for ... iter_args(%c = %wide_zero)
      %d = tt.dot %a, %b, %c : f16               ->       %d = tt.dot %a, %b, %c : f32
      scf.yield %d                                        scf.yield %d
                                                        %s = arith.truncf %r

Otherwise each iteration widens the sums and rounds them: on an H200 that costs a tenth of the speed of a product of
4096x4096 in tiles of 128x128x64. Sums that anything else reads in the loop stay, and those that threads multiply.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.types import element_type_of, f16, f32, with_element_type
from deuteron.machine.gpu import GPUConfig
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.gpu.dot_instructions import uses_mma, uses_wgmma
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase


@dataclass(frozen=True)
class WidenSums(Optimisation):
    """Rounds the sums of dots of f16 once, after their loop."""

    name = "widen-sums"

    config: GPUConfig

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in nested_ops(op, scf.ForOp):
            sums = {place: dots for place in range(len(loop.results)) if (dots := self._dots(loop, place))}
            if sums:
                _widen(loop, sums)

    def _dots(self, loop: scf.ForOp, place: int) -> list[DotOp]:
        """Those that add, one after the other, to what a loop carries at a place; none if anything else reads it."""
        value, dots = loop.body.block.args[place + 1], []
        while element_type_of(value.type) == f16 and len(uses := list(value.uses)) == 1:
            user, index = uses[0].operation, uses[0].index
            if user is loop.body.block.last_op:
                return dots if index == place else []
            if not self._adds(user, index) or user.parent is not loop.body.block:
                return []
            dots.append(user)
            value = user.result
        return []

    def _adds(self, user: Operation, index: int) -> bool:
        """Whether tensor cores add to the operand with this index."""
        if not isinstance(user, DotOp) or index != 2:
            return False
        return uses_wgmma(user, self.config) or uses_mma(user, self.config.machine)


def _widen(loop: scf.ForOp, sums: dict[int, list[DotOp]]) -> None:
    body = loop.body.block
    entering = [_wide(Builder.before(loop), loop.iter_args[place]) for place in sums]
    following = []
    for (place, dots), initial in zip(sums.items(), entering, strict=True):
        total = new_argument(loop, initial.type, body.args[place + 1].name_hint)
        for dot in dots:
            wide = DotOp(dot.a, dot.b, total)
            wide.properties.update(dot.properties)
            wide.attributes.update(dot.attributes)
            total = Builder.before(dot).value(wide)
            total.name_hint = dot.result.name_hint
        following.append(total)
        body.last_op.operands[place] = body.args[place + 1]
        for dot in reversed(dots):
            erase(dot)
    new = carry(loop, entering, following)
    after = Builder.after(new)
    for place, total in zip(sums, new.results[-len(sums) :], strict=True):
        narrow = new.results[place]
        rounded = after.value(arith.TruncFOp(total, narrow.type))
        rounded.name_hint = narrow.name_hint
        narrow.replace_all_uses_with(rounded)


def _wide(b: Builder, value: SSAValue) -> SSAValue:
    type, number = with_element_type(value.type, f32), constant_value(value)
    return b.value(arith.ExtFOp(value, type)) if number is None else b.constant(number, type)
