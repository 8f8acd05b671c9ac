"""Unrolls loops by their `tl.range(loop_unroll_factor=n)`: n iterations in one, and the rest in a loop after it.

    %r = "scf.for"(%lb, %ub, %step, %a) ({        %m = "scf.for"(%lb, %mid, %step4, %a) ({
    ^bb0(%i: i32, %x: f32):                       ^bb0(%i: i32, %x: f32):
      %y = f(%i, %x)                                %y = f(%i, %x)
      "scf.yield"(%y)                               %y1 = f(%i + %step, %y)
    }) {tt.loop_unroll_factor = 4}          ->      ...
                                                    "scf.yield"(%y3)
                                                  })
                                                  %r = "scf.for"(%mid, %ub, %step, %m) ({ ... }) {tt.num_stages = 1}

%mid is where the last whole group of n ends; it is between the bounds, so that nothing overflows. Where n steps do not
fit into their type, the second loop does it all. Bounds that are known leave no second loop, or no first, once folded;
the factor is at most the number of iterations then. What would be more code than can be compiled is refused. Loops that
have been asked have a factor of 1 left, so that they stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Region, SSAValue

from deuteron.errors import CompilationError
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import MOST_OPS, Builder
from deuteron.ir.location import from_attribute
from deuteron.ir.nested import nested_ops, nested_ops_inside_out
from deuteron.ir.types import bit_width_of, i32
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace

HINT = "tt.loop_unroll_factor"


def unroll(loop: scf.ForOp, factor: int) -> None:
    """Make one of so many iterations, and a loop of the rest after it."""
    b = Builder.before(loop)
    middle, step = _groups(b, loop, factor)
    groups = b.insert(scf.ForOp(loop.lb, middle, step, loop.iter_args, group_body(loop, factor)))
    groups.attributes.update(loop.attributes)
    rest = loop.clone()
    rest.operands = [middle, loop.ub, loop.step, *groups.results]
    rest.attributes["tt.num_stages"] = IntegerAttr(1, i32)
    replace(loop, b.insert(rest).results)


def _groups(b: Builder, loop: scf.ForOp, factor: int) -> tuple[SSAValue, SSAValue]:
    """Where the last whole group of iterations ends, ub - (ub - lb) % (factor * step) without signs, and that step."""
    type = loop.step.type
    one, largest = b.constant(1, type), (1 << bit_width_of(type) - 1) - 1
    before_step = b.value(arith.SubiOp(loop.step, one))  # without a sign, a step that is not positive is large
    fits = b.value(CmpIOp(before_step, b.constant(largest // factor, type), "ult"))
    step = b.value(arith.MuliOp(b.value(SelectOp(fits, loop.step, one)), b.constant(factor, type)))
    end = b.value(arith.MaxSIOp(loop.lb, loop.ub))
    rest = b.value(arith.RemUIOp(b.value(arith.SubiOp(end, loop.lb)), step))
    return b.value(SelectOp(fits, b.value(arith.SubiOp(end, rest)), loop.lb)), step


def group_body(loop: scf.ForOp, factor: int) -> Region:
    """The body, `factor` times, each with what the one before it yields."""
    old = loop.body.block
    block = Block(arg_types=old.arg_types)
    for argument, source in zip(block.args, old.args, strict=True):
        argument.name_hint, argument.location = source.name_hint, source.location
    b = Builder.at_end(block, loop.location)
    induction, *carried = block.args
    for copy in range(factor):
        index = induction
        if copy:
            offset = b.value(arith.MuliOp(loop.step, b.constant(copy, loop.step.type)))
            index = b.value(arith.AddiOp(induction, offset))
        carried = copy_iteration(b, loop, index, carried)
    b.insert(scf.YieldOp(*carried))
    return Region(block)


def copy_iteration(b: Builder, loop: scf.ForOp, index: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
    """What an iteration yields, whose ops are inserted."""
    block = loop.body.block
    values = dict(zip(block.args, (index, *carried), strict=True))
    for op in list(block.ops)[:-1]:
        b.insert(op.clone(values))
    return [values.get(operand, operand) for operand in block.last_op.operands]


def known_iterations(loop: scf.ForOp) -> range | None:
    """The indices of a loop; None: they are not known, or there are none."""
    bounds = [constant_value(value) for value in (loop.lb, loop.ub, loop.step)]
    return range(*bounds) or None if None not in bounds and bounds[2] > 0 else None


def _check_size(loop: scf.ForOp, factor: int) -> None:
    size = len(nested_ops(loop)) - 1
    if size * factor > MOST_OPS:
        raise CompilationError(
            f"loop_unroll_factor={factor} makes {size * factor} ops of this loop of {size}, more than {MOST_OPS}. Use "
            f"{MOST_OPS // size} or less.",
            *from_attribute(loop.location),
        )


class UnrollLoops(Optimisation):
    """Unrolls the loops that ask for it, inner ones first."""

    name = "unroll-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops = nested_ops_inside_out(op, scf.ForOp)
        hinted = [(loop, loop.attributes[HINT].value.data) for loop in loops if HINT in loop.attributes]
        for loop, factor in hinted:
            loop.attributes[HINT] = IntegerAttr(1, i32)
            factor = min(factor, len(known_iterations(loop) or range(factor)))
            if factor > 1:
                _check_size(loop, factor)
                unroll(loop, factor)
