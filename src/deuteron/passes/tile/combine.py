"""Puts neighbouring ops together where one does it.

    add(dot(a, b, 0), c)                    ->  dot(a, b, c)              where the dot has no other use
    select(mask, load(p, mask), other)      ->  load(p, mask, other)      where the load has no `other` of its own
    addptr(addptr(p, i), j)                 ->  addptr(p, i + j)          where i + j is a scalar's work, or known
    addptr(splat(p), splat(i))              ->  splat(addptr(p, i))
    float(int(c) - int(d))                  ->  float(c) - float(d)       of bools: a sign, as Inductor writes it
    select(a > b or a != a, a, b)           ->  maximum(a, b)             what a reduction combines: zeros have no order

An accumulating dot rounds once less. Narrow offsets are only added where both are constants and their sum fits: each
is widened to 64 bits by itself. Runs after common subexpressions are merged, so that equal masks are one value.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from deuteron.ir.arith import CmpFOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.casts import ExtUIOp, SIToFPOp
from deuteron.ir.hints import has_promises, promising_as
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import AddPtrOp, LoadOp
from deuteron.ir.tt.reduce import ReduceOp
from deuteron.ir.tt.shape import SplatOp
from deuteron.ir.types import bit_width_of, element_type_of, i1, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase, replace
from deuteron.passes.tile.folding.memory import load_like


def combine_dot(op: arith.AddfOp | arith.AddiOp) -> SSAValue | None:
    for product, addend in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        dot = product.owner
        is_plain = isinstance(dot, DotOp) and product.has_one_use() and constant_value(dot.c) == 0
        if is_plain and dot.parent is op.parent:
            builder = Builder(InsertPoint.before(op), dot.location)
            total = DotOp.create(
                operands=[dot.a, dot.b, addend],
                result_types=[op.result.type],
                properties=dot.properties,
                attributes=dot.attributes,
            )
            return builder.value(total)
    return None


def combine_select(op: SelectOp) -> SSAValue | None:
    """Where the mask is false the load gave nothing in particular, so `other` is as good."""
    load = op.true_value.owner
    if not isinstance(load, LoadOp) or not op.true_value.has_one_use():
        return None
    if load.mask is not op.condition or load.other is not None:
        return None
    other = _available_at(load, op.false_value)
    return Builder.before(load).value(load_like(load, load.mask, other)) if other is not None else None


def combine_extremum(op: SelectOp) -> SSAValue | None:
    """In a reduction: of zeros of both signs it gives one or the other, by the order in which it combines."""
    either, a, b = op.condition.owner, op.true_value, op.false_value
    if not isinstance(op.parent_op(), ReduceOp) or not isinstance(either, arith.OrIOp):
        return None
    tests = [operand.owner for operand in either.operands]
    if not all(isinstance(test, CmpFOp) for test in tests):
        return None
    said = {(test.predicate_name, *test.operands) for test in tests}
    for predicate, extremum in (("ogt", arith.MaximumfOp), ("olt", arith.MinimumfOp)):
        if said == {(predicate, a, b), ("une", a, a)}:
            return Builder.before(op).value(extremum(a, b))
    return None


def combine_difference(op: SIToFPOp) -> SSAValue | None:
    """Of two bools, whose integers have to be widened and converted."""
    difference = op.input.owner
    if not isinstance(difference, arith.SubiOp):
        return None
    widened = [operand.owner for operand in difference.operands]
    if not all(isinstance(one, ExtUIOp) and element_type_of(one.input.type) == i1 for one in widened):
        return None
    builder, type = Builder.before(op), op.result.type
    one, zero = builder.constant(1.0, type), builder.constant(0.0, type)
    return builder.value(arith.SubfOp(*(builder.value(SelectOp(bool.input, one, zero)) for bool in widened)))


def _available_at(op: Operation, value: SSAValue) -> SSAValue | None:
    """The value where it is defined before an op, a constant made anew, or None."""
    number = constant_value(value)
    if number is not None:
        return Builder.before(op).constant(number, value.type)
    made_by = value.owner if isinstance(value.owner, Operation) else None
    block = made_by.parent if made_by is not None else value.owner
    beside = block.find_ancestor_op_in_block(op)
    is_earlier = beside is not None and (made_by is None or made_by.is_before_in_block(beside))
    return value if is_earlier else None


def combine_addptr(op: AddPtrOp) -> SSAValue | None:
    builder, pointer = Builder.before(op), op.ptr.owner
    scalar = _scalar_everywhere(builder, op.offset)
    if scalar is not None and isinstance(pointer, SplatOp):
        return builder.value(SplatOp(builder.value(AddPtrOp(pointer.src, scalar)), shape_of(op.result.type)))
    if not isinstance(pointer, AddPtrOp) or pointer.offset.type != op.offset.type or has_promises(pointer):
        return None  # a promise is of the pointer in between
    total = _sum(builder, pointer.offset, op.offset)
    return builder.value(promising_as(op, AddPtrOp(pointer.ptr, total))) if total is not None else None


def _scalar_everywhere(builder: Builder, value: SSAValue) -> SSAValue | None:
    """The scalar that a tile is everywhere, or None."""
    if isinstance(value.owner, SplatOp):
        return value.owner.src
    number = constant_value(value) if shape_of(value.type) else None
    return builder.constant(number, element_type_of(value.type)) if number is not None else None


def _sum(builder: Builder, lhs: SSAValue, rhs: SSAValue) -> SSAValue | None:
    """The sum of two offsets if it costs no more than a scalar addition and cannot overflow."""
    numbers, width = (constant_value(lhs), constant_value(rhs)), bit_width_of(lhs.type)
    if None not in numbers:
        fits = -(1 << width - 1) <= sum(numbers) < 1 << width - 1
        return builder.constant(sum(numbers), lhs.type) if fits else None
    is_scalar = not shape_of(lhs.type)
    return builder.value(arith.AddiOp(lhs, rhs)) if is_scalar and width == 64 else None


_COMBINE: dict[str, Callable[..., SSAValue | None]] = {
    arith.AddfOp.name: combine_dot,
    arith.AddiOp.name: combine_dot,
    SelectOp.name: lambda op: combine_select(op) or combine_extremum(op),
    SIToFPOp.name: combine_difference,
    AddPtrOp.name: combine_addptr,
}


class Combine(Optimisation):
    """Combines each op with those it uses."""

    name = "combine"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for candidate in nested_ops(op):
            rule = _COMBINE.get(candidate.name)
            value = rule(candidate) if rule is not None else None
            if value is not None:
                replaced = [operand.owner for operand in candidate.operands]
                replace(candidate, [value])
                _erase_unused(replaced)


def _erase_unused(ops: list) -> None:
    """Erase the ops that were combined into another: an unused load or dot is work."""
    for op in ops:
        is_unused = isinstance(op, (LoadOp, DotOp)) and op.parent is not None and op.results[0].first_use is None
        if is_unused:
            erase(op)
