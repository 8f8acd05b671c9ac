"""Loads once what neighbours of a tile that dots read have in common: words of which each is several packed elements.

    %p = tt.addptr(%base, (range(0, 128) / 8) * stride + columns)      128 x 64 pointers, each eight times
    %w = tt.load(%p)
  ->
    %p = tt.addptr(%base, range(0, 16) * stride + columns)             16 x 64
    %l = tt.load(%p)
    %w = tt.reshape(tt.broadcast(tt.expand_dims(%l)))                  16 x 8 x 64 is 128 x 64

So memory and shared memory hold each word once. Every n-th element of a tile of pointers is computed as the tile is, of
every n-th element of what that is computed of; pointers that a loop advances are carried besides.
"""

from __future__ import annotations

from math import gcd

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.builder import Builder
from deuteron.ir.forwarding import forwarded_from
from deuteron.ir.hints import hints_of_every
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.memory import LoadOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import element_type_of, is_tile, shape_of, tile
from deuteron.passes.carried_values import carry, new_argument
from deuteron.passes.gpu.rings.buffered_loads import fed_to_dots
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.rewrite import replace


class LoadOnce(Optimisation):
    """Makes loads of repeated elements smaller."""

    name = "load-once"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            _shrink_all(func)


def _shrink_all(func: FuncOp) -> None:
    """The analysis is of all the function, so it is made again only where a load has become others."""
    info = None
    fed = fed_to_dots(func)
    for load in [one for one in nested_ops(func, LoadOp) if one.result in fed and _may_be_smaller(one)]:
        info = info or AxisInfoAnalysis(func)
        if _shrink(load, info):
            info = None


def _may_be_smaller(load: LoadOp) -> bool:
    return len(shape_of(load.result.type)) == 2 and not load.is_volatile.value.data


def _shrink(load: LoadOp, info: AxisInfoAnalysis) -> bool:
    """Along the first dimension in which the elements are repeated; whether there is one."""
    shape = shape_of(load.result.type)
    for axis, extent in enumerate(shape):
        count = gcd(extent // 2, *(info.of(operand).constancy[axis] for operand in load.operands))
        if count > 1 and all(_can_sample(operand, axis, set()) for operand in load.operands):
            _load_every(load, axis, count)
            return True
    return False


def _load_every(load: LoadOp, axis: int, count: int) -> None:
    sampling = _Sampling(count)
    operands = [sampling.of(operand, axis) for operand in load.operands]
    sampling.finish()
    b, shape = Builder.before(load), shape_of(load.result.type)
    small = _every(load.result.type, axis, count)
    loaded = b.value(
        LoadOp.create(operands=operands, result_types=[small], properties=load.properties, attributes=load.attributes)
    )
    loaded.name_hint = load.result.name_hint
    expanded = b.value(ExpandDimsOp(loaded, axis + 1))
    repeated = b.value(BroadcastOp(expanded, (*shape[:axis], shape[axis] // count, count, *shape[axis + 1 :])))
    replace(load, [b.value(ReshapeOp(repeated, shape))])


def _every(type: Attribute, axis: int, count: int) -> Attribute:
    """The type of every n-th element along a dimension; one of extent 1 stays."""
    shape = list(shape_of(type))
    shape[axis] = max(shape[axis] // count, 1)
    return tile(element_type_of(type), shape)


def _can_sample(value: SSAValue, axis: int, seen: set[tuple[SSAValue, int]]) -> bool:
    """Whether it is known how every n-th element is computed. A tile may be needed along several dimensions."""
    if (value, axis) in seen or shape_of(value.type)[axis] == 1:
        return True
    seen.add((value, axis))
    if isinstance(value, BlockArgument):
        return _is_carried(value) and all(_can_sample(source, axis, seen) for source in forwarded_from(value))
    op = value.op
    if isinstance(op, ConstantOp):
        return isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat()
    if isinstance(op, SplatOp | MakeRangeOp):
        return True
    if isinstance(op, ExpandDimsOp | BroadcastOp | TransOp) or is_elementwise(op):
        inner = _inner_axis(op, axis)
        return all(_can_sample(operand, inner, seen) for operand in op.operands if is_tile(operand.type))
    return False


def _is_carried(value: BlockArgument) -> bool:
    return isinstance(value.block.parent_op(), scf.ForOp) and value.index > 0


def _inner_axis(op: Operation, axis: int) -> int:
    """The dimension of the source that is this one of the result."""
    return op.source_axis(axis) if isinstance(op, ExpandDimsOp | TransOp) else axis


class _Sampling:
    """Every n-th element of values, each computed once for a dimension."""

    def __init__(self, count: int):
        self._count = count
        self._known: dict[tuple[SSAValue, int], SSAValue] = {}
        self._carried: dict[scf.ForOp, list[tuple[SSAValue, int, int]]] = {}

    def of(self, value: SSAValue, axis: int) -> SSAValue:
        if shape_of(value.type)[axis] == 1:
            return value
        if (value, axis) not in self._known:
            make = self._argument if isinstance(value, BlockArgument) else self._made
            self._known[value, axis] = make(value, axis)
        return self._known[value, axis]

    def _argument(self, value: BlockArgument, axis: int) -> SSAValue:
        loop = value.block.parent_op()
        argument = new_argument(loop, _every(value.type, axis, self._count), value.name_hint)
        self._carried.setdefault(loop, []).append((argument, axis, value.index - 1))
        return argument

    def finish(self) -> None:
        """Build anew the loops that carry more; what enters one may be carried by another."""
        while self._carried:
            loop, added = self._carried.popitem()
            index = 0
            entering, following = [], []
            while index < len(added):
                _, axis, position = added[index]
                entering.append(self.of(loop.iter_args[position], axis))
                following.append(self.of(loop.body.block.last_op.operands[position], axis))
                added = [*added, *self._carried.pop(loop, [])]
                index += 1
            carry(loop, entering, following)

    def _made(self, value: OpResult, axis: int) -> SSAValue:
        op, small = value.op, _every(value.type, axis, self._count)
        b = Builder.after(op)
        if isinstance(op, ConstantOp):
            return b.value(ConstantOp(DenseIntOrFPElementsAttr(small, op.value.data), small))
        if isinstance(op, MakeRangeOp):
            return self._range(b, op)
        if isinstance(op, arith.DivSIOp | arith.DivUIOp) and (counted := self._quotient(op, axis)) is not None:
            return counted
        if isinstance(op, SplatOp | BroadcastOp | ExpandDimsOp | TransOp):
            inner = _inner_axis(op, axis)
            operands = [op.src if isinstance(op, SplatOp) else self.of(op.src, inner)]
        else:
            operands = [self.of(o, axis) if is_tile(o.type) else o for o in op.operands]
        attributes = hints_of_every(op, axis, self._count)
        made = type(op).create(
            operands=operands, result_types=[small], properties=dict(op.properties), attributes=attributes
        )
        return b.value(made)

    def _range(self, b: Builder, op: MakeRangeOp) -> SSAValue:
        start, end = op.start.value.data, op.end.value.data
        numbers = b.value(MakeRangeOp(0, (end - start) // self._count))
        scaled = b.value(arith.MuliOp(numbers, b.constant(self._count, numbers.type)))
        return b.value(arith.AddiOp(scaled, b.constant(start, numbers.type))) if start else scaled

    def _quotient(self, op: arith.DivSIOp | arith.DivUIOp, axis: int) -> SSAValue | None:
        """Every n-th element of a range over n: they are neighbours, which `range * n / n` would not show."""
        divisor = op.rhs.owner
        is_count = isinstance(divisor, ConstantOp) and divisor.value.get_values()[0] == self._count
        return self._counted(op.lhs, axis) if is_count else None

    def _counted(self, value: SSAValue, axis: int) -> SSAValue | None:
        op = value.owner
        if isinstance(op, ExpandDimsOp):
            inner = self._counted(op.src, op.source_axis(axis))
            return None if inner is None else Builder.after(op).value(ExpandDimsOp(inner, op.axis.value.data))
        if isinstance(op, MakeRangeOp) and op.start.value.data % self._count == 0:
            start, end = (bound.value.data // self._count for bound in (op.start, op.end))
            return Builder.after(op).value(MakeRangeOp(start, end))
        return None
