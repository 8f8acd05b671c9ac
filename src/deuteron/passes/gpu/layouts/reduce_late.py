"""Reduces what a loop adds up once, after it, not in each iteration.

    %r = scf.for ... iter_args(%sum = %start)           %r = scf.for ... iter_args(%parts = %zeros)
      %s = "tt.reduce"(%x) ({ add })                      %p = "tt.reduce" of what each thread holds of %x
      %t = arith.addf %sum, %s                     ->     %t = arith.addf %parts, %p
      scf.yield %t                                        scf.yield %t
                                                        %s = "tt.reduce"(%r) ({ add })
                                                        %t = arith.addf %start, %s

Threads then exchange their parts once. Each carries as many as lanes and warps leave of its registers: sums of which
it would carry too many stay, as do those that anything else reads in the loop, those of one thread each, and those of
floats of 16 bits: where each iteration's sum is small, parts might grow beyond the largest number.
"""

from __future__ import annotations

from itertools import groupby
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.reduce import ReduceOp, reduced_type
from deuteron.ir.tt.shape import ReshapeOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttg.layout import layout_of, with_layout
from deuteron.ir.types import bit_width_of, element_type_of, i32, is_float, is_tile, shape_of, tile
from deuteron.layout.distributed import slice_axis
from deuteron.layout.linear import LANE, REGISTER, WARP, LinearLayout, log2
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import erase

# What is added to any number leaves it as it is.
ZEROS: dict[type[Operation], float | int] = {arith.AddfOp: -0.0, arith.AddiOp: 0}
# Parts that a thread carries. Not measured; those of norms and statistics are up to 8.
MOST_PARTS = 16


class ReduceLate(Optimisation):
    """Adds up the parts of threads after loops."""

    name = "reduce-late"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in nested_ops(op, scf.ForOp):
            sums = {place: one for place in range(len(loop.results)) if (one := _reduction(loop, place)) is not None}
            if sums:
                _delay(loop, sums)


def _reduction(loop: scf.ForOp, place: int) -> ReduceOp | None:
    """What alone is added to a value that a loop carries, if that is read by nothing else."""
    body = loop.body.block
    argument = body.args[place + 1]
    add = argument.get_user_of_unique_use()
    if type(add) not in ZEROS or add.parent is not body or body.last_op.operands[place] is not add.results[0]:
        return None
    added = next((operand for operand in add.operands if operand is not argument), None)
    is_alone = added is not None and all(value.has_one_use() for value in (added, add.results[0]))
    if not is_alone or not isinstance(added, OpResult) or not isinstance(added.op, ReduceOp):
        return None
    return added.op if added.op.parent is body and _only_adds(added.op, type(add)) and _is_exchanged(added.op) else None


def _only_adds(op: ReduceOp, add: type[Operation]) -> bool:
    first, *others = op.combine.block.ops
    if is_float(element_type_of(op.srcs[0].type)) and bit_width_of(op.srcs[0].type) < bit_width_of(i32):
        return False
    return len(op.srcs) == 1 and type(first) is add and len(others) == 1 and others[0].operands[0] is first.results[0]


def _is_exchanged(op: ReduceOp) -> bool:
    """Whether threads have parts of the same sum, and each few of them."""
    layout, axis = layout_of(op.srcs[0].type), op.axis.value.data
    is_shared = any(basis[axis] for name in (LANE, WARP) for basis in layout.of(name))
    parts = layout.in_size(REGISTER) >> len(_held_bits(layout, axis))
    return is_shared and parts <= MOST_PARTS


def _held_bits(layout: LinearLayout, axis: int) -> list[int]:
    """The bits of an index along the axis that a register alone decides, and nothing else."""
    bases = [basis for name in layout.in_names for basis in layout.of(name)]
    alone = [basis[axis] for basis in layout.of(REGISTER) if basis[axis] and sum(map(bool, basis)) == 1]
    bits = [bit for bit in range(log2(layout.shape[axis])) if 1 << bit in alone]
    return [bit for bit in bits if sum(basis[axis] >> bit & 1 for basis in bases) == 1]


def _delay(loop: scf.ForOp, sums: dict[int, ReduceOp]) -> None:
    body, entering, following = loop.body.block, [], []
    adds = {place: body.last_op.operands[place].op for place in sums}
    starts = {place: loop.iter_args[place] for place in sums}
    for place, reduction in sums.items():
        add, part = adds[place], _part(reduction)
        entering.append(Builder.before(loop).constant(ZEROS[type(add)], part.type))
        parts = new_argument(loop, part.type, body.args[place + 1].name_hint)
        following.append(_added(Builder.before(add), add, parts, part))
        body.last_op.operands[place] = body.args[place + 1]
    new = carry(loop, entering, following)
    after = Builder.after(new)
    for (place, reduction), parts in zip(sums.items(), new.results[-len(sums) :], strict=True):
        old = new.results[place]
        total = _added(after, adds[place], starts[place], _total(after, reduction, parts, old))
        old.replace_all_uses_with(total)
        erase(adds[place])
        erase(reduction)


def _part(op: ReduceOp) -> SSAValue:
    """What each thread adds up of what it holds: the axis in runs of bits, without those that its registers decide."""
    b, axis = Builder.before(op), op.axis.value.data
    held = _held_bits(layout_of(op.srcs[0].type), axis)
    bits = reversed(range(log2(shape_of(op.srcs[0].type)[axis])))
    runs = [(is_held, len(list(run))) for is_held, run in groupby(bits, lambda bit: bit in held)]
    value = _split(b, op.srcs[0], axis, [1 << length for _, length in runs])
    for place in reversed([index for index, (is_held, _) in enumerate(runs) if is_held]):
        value = _reduced(b, op, value, axis + place)
    return value


def _total(b: Builder, op: ReduceOp, parts: SSAValue, like: SSAValue) -> SSAValue:
    """The sum of all parts, where what it is added to is."""
    axis, rank = op.axis.value.data, len(shape_of(op.srcs[0].type))
    shape = shape_of(parts.type)
    rest = shape[axis : len(shape) - (rank - axis - 1)]
    whole = _reshaped(b, parts, (*shape[:axis], prod(rest), *shape[axis + len(rest) :]))
    total = _reduced(b, op, whole, axis)
    return b.value(ConvertLayoutOp(total, like.type)) if total.type != like.type else total


def _split(b: Builder, value: SSAValue, axis: int, sizes: list[int]) -> SSAValue:
    shape = shape_of(value.type)
    return _reshaped(b, value, (*shape[:axis], *sizes, *shape[axis + 1 :]))


def _reshaped(b: Builder, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
    """Elements stay where they are."""
    if shape == shape_of(value.type):
        return value
    type = with_layout(tile(element_type_of(value.type), shape), layout_of(value.type).reshape(shape))
    return b.value(ReshapeOp.create(operands=[value], result_types=[type]))


def _reduced(b: Builder, op: ReduceOp, value: SSAValue, axis: int) -> SSAValue:
    """As by `op`, along another axis."""
    type = reduced_type(value.type, axis)
    type = with_layout(type, slice_axis(layout_of(value.type), axis)) if is_tile(type) else type
    properties = dict(op.properties) | {"axis": IntegerAttr(axis, i32)}
    made = ReduceOp.create(operands=[value], result_types=[type], properties=properties, regions=[op.combine.clone()])
    return b.value(made)


def _added(b: Builder, add: Operation, left: SSAValue, right: SSAValue) -> SSAValue:
    return b.value(type(add).create(operands=[left, right], result_types=[left.type], properties=dict(add.properties)))
