"""Scales the largest element, where a kernel looks for the largest of what it scales.

    %s = arith.mulf %x, splat(%c)            %m = scf.if 0 < %c < inf {       a scalar: the same for all threads
    %m = "tt.reduce"(%s) ({ max })             mulf("tt.reduce"(%x) ({ max }), splat(%c))
    %d = arith.subf %s, %m             ->    } else {
                                               "tt.reduce"(mulf(%x, splat(%c))) ({ max })
                                             }
                                             %s = arith.mulf %x, splat(%c)    now with %d an `fma`
                                             %d = arith.subf %s, %m

What rounds a product by a positive number keeps the order of numbers, and their being NaN or not, so that both give the
same to the bit; by other numbers it may not (0 * inf). Of constants that is known, without a branch. Causal attention
in one loop (D=128, 128x128) has 458 instructions in an iteration in the place of 517. Kernels without dots wait for
memory: they would gain nothing, and round a difference in another way.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from deuteron.ir.arith import CmpFOp, constant_value
from deuteron.ir.around import loops_around
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import functions_in
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.ttg.layout import layout_of
from deuteron.ir.types import is_tile
from deuteron.layout.linear import REGISTER
from deuteron.passes.gpu.rings.buffered_loads import has_dots
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace

EXTREMA = (arith.MaxnumfOp, arith.MinnumfOp, arith.MaximumfOp, arith.MinimumfOp)
INFINITY = float("inf")
# Elements of a thread, each a multiplication less. A branch takes some ten cycles, and what is on one side of it is not
# computed beside what is on the other.
LEAST = 16


class Scaled(NamedTuple):
    """A product, all of whose other uses come after the reduction of it."""

    product: arith.MulfOp
    tile: SSAValue
    factor: SSAValue  # the same number everywhere


class ScaleExtrema(Optimisation):
    """Scales the largest element instead of looking for the largest of what is scaled."""

    name = "scale-extrema"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            for reduction in nested_ops(func, ReduceOp):
                scaled = _scaled(reduction) if _finds_extremum(reduction) else None
                if scaled is not None:
                    _scale_late(reduction, scaled)


def _finds_extremum(op: ReduceOp) -> bool:
    block = op.combine.block
    extremum = block.last_op.operands[0].owner
    return len(op.srcs) == 1 and isinstance(extremum, EXTREMA) and set(extremum.operands) == set(block.args)


def _scaled(reduction: ReduceOp) -> Scaled | None:
    """What is reduced, if it is a product by one number."""
    product = reduction.srcs[0].owner
    if not isinstance(product, arith.MulfOp) or product.parent is not reduction.parent:
        return None
    others = [use.operation for use in product.result.uses if use.operation is not reduction]
    if not all(_comes_after(other, reduction) for other in others) or not _pays(reduction, others):
        return None
    for tile, factor in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        if _may_keep_order(factor):
            return Scaled(product, tile, factor)
    return None


def _may_keep_order(factor: SSAValue) -> bool:
    """Whether it is one number, positive and finite as far as is known."""
    number = constant_value(factor)
    return isinstance(factor.owner, SplatOp) if number is None else 0 < number < INFINITY


def _comes_after(op: Operation, first: Operation) -> bool:
    beside = first.parent.find_ancestor_op_in_block(op)
    return beside is not None and first.is_before_in_block(beside)


def _pays(reduction: ReduceOp, others: list[Operation]) -> bool:
    """Whether many multiplications go away, or into sums, in a loop that is not bound by memory."""
    loop = next(loops_around(reduction), None)
    if loop is None or not has_dots(loop) or not all(isinstance(op, arith.AddfOp | arith.SubfOp) for op in others):
        return False
    return layout_of(reduction.srcs[0].type).in_size(REGISTER) >= LEAST


def _scale_late(reduction: ReduceOp, scaled: Scaled) -> None:
    b = Builder.before(reduction)
    if constant_value(scaled.factor) is not None:
        extremum = _extremum_scaled(b, reduction, scaled)
    else:
        extremum = _either(b, reduction, scaled)
    scaled.product.detach()
    extremum.owner.parent.insert_op_after(scaled.product, extremum.owner)
    replace(reduction, [extremum])


def _either(b: Builder, reduction: ReduceOp, scaled: Scaled) -> SSAValue:
    keeps_order = _keeps_order(Builder.after(scaled.factor.owner), scaled.factor.owner.src)
    regions = [Region(Block()), Region(Block())]
    for region, extremum_of in zip(regions, (_extremum_scaled, _extremum_of_scaled), strict=True):
        with b.at(region.block):
            b.insert(scf.YieldOp(extremum_of(b, reduction, scaled)))
    return b.value(scf.IfOp(keeps_order, [reduction.results[0].type], *regions))


def _keeps_order(b: Builder, number: SSAValue) -> SSAValue:
    """Whether it is positive and finite. Asked where the factor is: in front of loops that do not change it."""
    is_positive = b.value(CmpFOp(number, b.constant(0.0, number.type), "ogt"))
    return b.value(arith.AndIOp(is_positive, b.value(CmpFOp(number, b.constant(INFINITY, number.type), "olt"))))


def _extremum_scaled(b: Builder, reduction: ReduceOp, scaled: Scaled) -> SSAValue:
    extremum = _reduced(b, reduction, scaled.tile)
    return b.value(arith.MulfOp(extremum, _everywhere(b, scaled.factor, extremum.type)))


def _extremum_of_scaled(b: Builder, reduction: ReduceOp, scaled: Scaled) -> SSAValue:
    return _reduced(b, reduction, b.value(arith.MulfOp(scaled.tile, scaled.factor)))


def _reduced(b: Builder, reduction: ReduceOp, tile: SSAValue) -> SSAValue:
    return b.value(reduction.clone({reduction.srcs[0]: tile}))


def _everywhere(b: Builder, factor: SSAValue, type: Attribute) -> SSAValue:
    """The number that a tile is everywhere, as another tile or as a scalar."""
    number = constant_value(factor)
    if number is not None:
        return b.constant(number, type)
    scalar = factor.owner.src
    return b.value(SplatOp.create(operands=[scalar], result_types=[type])) if is_tile(type) else scalar
