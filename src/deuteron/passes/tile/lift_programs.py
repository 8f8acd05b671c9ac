"""Lifts a program to several neighbours that run in step: what varies between them gets one more dimension, the last.

    p = program_id(0)                               p = program_id(0) + arange(0, 16)               of 16
    x = load(x_ptr + i * n + p, i < m)       ->     x = load(x_ptr + i[:, None] * n + p[None, :], ...)
    s = sum(x, 0)                                   s = sum(x, 0)                                   of 16
    store(y_ptr + p, s)                             store(y_ptr + p, s, p < num_programs(0))

What is the same in all of them stays as it is. Where they take different branches they take both. Programs come in no
order, and their accesses neither: all of them load before any of them stores what comes after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from deuteron.analysis.program_variance import factors_of, is_in_branch, is_program_id, is_row_number
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.hints import HINTS
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp, UnsplatOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import element_type_of, i32, is_block_pointer, num_elements_of, shape_of, tile


@dataclass(frozen=True)
class Lift:
    """So many programs along an axis, between which some values vary; `row`: all of them in one row of so many, where
    `divisors` number rows.
    """

    axis: int
    count: int
    varying: set[SSAValue]
    row: SSAValue | None = None
    divisors: tuple[SSAValue, ...] = ()

    def can_lift(self, func: FuncOp, most_elements: int) -> bool:
        """Whether all that varies can have one more dimension, in tiles of at most so many elements."""
        return all(self._can_lift(op, most_elements) for op in nested_ops(func) if op is not func)

    def _can_lift(self, op: Operation, most_elements: int) -> bool:
        if not self._varies(op):
            return True
        if any(self.count * num_elements_of(value.type) > most_elements for value in op.results):
            return False
        condition = _CONDITIONS.get(type(op))
        return condition(self, op) if condition is not None else is_elementwise(op) and not op.regions

    def _varies(self, op: Operation) -> bool:
        if isinstance(op, StoreOp) and is_in_branch(op, self.varying):
            return True
        return not (self.varying.isdisjoint(op.operands) and self.varying.isdisjoint(op.results))

    def are_few(self, b: Builder) -> SSAValue:
        """Whether there are fewer programs than half of those that a group has room for."""
        there = b.value(GetNumProgramsOp(self.axis))
        there = there if self.row is None else b.value(arith.MinSIOp(there, self.row_length(b)))
        return b.value(CmpIOp(there, b.constant(self.count // 2, i32), "slt"))

    def is_first(self, b: Builder) -> SSAValue:
        """Whether a program does the work of those after it."""
        place = self.place_in_row(b, b.value(GetProgramIdOp(self.axis)))
        in_group = b.value(arith.AndIOp(place, b.constant(self.count - 1, i32)))
        return b.value(CmpIOp(in_group, b.constant(0, i32), "eq"))

    def place_in_row(self, b: Builder, program: SSAValue) -> SSAValue:
        return program if self.row is None else b.value(arith.RemSIOp(program, self.row_length(b)))

    def row_length(self, b: Builder) -> SSAValue:
        """It counts without its sign, as in remainders. Programs stay alone where it is no number of them, or a divisor
        no multiple of it, as a product that overflows.
        """
        zero, row = b.constant(0, i32), _again(b, self.row)
        length = b.value(arith.MaxSIOp(row, b.value(arith.SubiOp(zero, row))))
        are_rows = b.value(CmpIOp(length, zero, "sgt"))
        for divisor in self.divisors:
            rest = b.value(arith.RemSIOp(reduce(_product(b), (_again(b, one) for one in factors_of(divisor))), row))
            are_rows = b.value(arith.AndIOp(are_rows, b.value(CmpIOp(rest, zero, "eq"))))
        return b.value(SelectOp(are_rows, length, b.constant(1, i32)))

    def lift(self, ops: Iterable[Operation], builder: Builder) -> None:
        """Build what lifted programs do of what one does."""
        _Lifted(self, builder).ops(ops)


def _again(b: Builder, value: SSAValue) -> SSAValue:
    """An argument, or a constant once more."""
    number = constant_value(value)
    return value if number is None else b.constant(number, value.type)


def _product(b: Builder) -> Callable[[SSAValue, SSAValue], SSAValue]:
    return lambda left, right: b.value(arith.MuliOp(left, right))


class _Lifted:
    """The ops of lifted programs while they are built; `values`: what has become of those of one program."""

    def __init__(self, lift: Lift, builder: Builder) -> None:
        self._lift, self._builder = lift, builder
        self._values: dict[SSAValue, SSAValue] = {}
        self._first = builder.value(GetProgramIdOp(lift.axis))
        self._places = builder.value(MakeRangeOp(0, lift.count))
        self._is_there = builder.value(CmpIOp(self._places, self._splatted(self._num_left()), "slt"))

    def _num_left(self) -> SSAValue:
        """How many programs there are from the first on, in the grid and in a row: what is left does not overflow."""
        b, lift = self._builder, self._lift
        count = b.value(arith.SubiOp(b.value(GetNumProgramsOp(lift.axis)), self._first))
        if lift.row is None:
            return count
        in_row = b.value(arith.SubiOp(lift.row_length(b), lift.place_in_row(b, self._first)))
        return b.value(arith.MinSIOp(count, in_row))

    def _from(self, first: SSAValue) -> SSAValue:
        return self._builder.value(arith.AddiOp(self._splatted(first), self._places))

    def _splatted(self, scalar: SSAValue) -> SSAValue:
        return self._builder.value(SplatOp(scalar, (self._lift.count,)))

    def ops(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            with self._builder.located(op.location):
                self._op(op)

    def _op(self, op: Operation) -> None:
        if is_row_number(op, self._lift.axis, self._lift.row):
            divisor = self._values.get(op.rhs, op.rhs)
            self._enter(op, [self._builder.value(arith.DivSIOp(self._first, divisor))])
            return
        if not any(map(self._lift._varies, nested_ops(op))):
            self._builder.insert(op.clone(self._values))
            return
        rule = _RULES.get(type(op), _Lifted._elementwise)
        self._enter(op, rule(self, op))

    def _enter(self, op: Operation, values: Sequence[SSAValue]) -> None:
        for old, new in zip(op.results, values, strict=True):
            new.name_hint = old.name_hint
            self._values[old] = new

    # -- values ---

    def _type(self, type: Attribute) -> Attribute:
        return tile(element_type_of(type), (*shape_of(type), self._lift.count))

    def _of(self, value: SSAValue, shape: tuple[int, ...] | None = None) -> SSAValue:
        """A value with one more dimension; a scalar in the place of a tile of that shape."""
        shape, b = shape_of(value.type) if shape is None else shape, self._builder
        type = tile(element_type_of(value.type), (*shape, self._lift.count))
        if value in self._lift.varying:
            return self._repeated(self._values[value], shape_of(type))
        number = constant_value(value)
        if number is not None:
            return b.constant(number, type)
        source = self._values.get(value, value)
        if not shape_of(source.type):
            return b.value(SplatOp(source, shape_of(type)))
        return b.value(BroadcastOp(b.value(ExpandDimsOp(source, len(shape))), shape_of(type)))

    def _repeated(self, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        if shape_of(value.type) == shape:
            return value
        for _ in shape[1:]:
            value = self._builder.value(ExpandDimsOp(value, 0))
        return self._builder.value(BroadcastOp(value, shape))

    # -- rules ---

    def _elementwise(self, op: Operation) -> Sequence[SSAValue]:
        shape = shape_of(op.results[0].type)
        return self._like(op, [self._of(operand, shape) for operand in op.operands])

    def _like(self, op: Operation, operands: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The same op on other operands, without what is promised of the dimensions of its results."""
        kept = {name: value for name, value in op.attributes.items() if name not in HINTS}
        types = [self._type(result.type) for result in op.results]
        made = type(op).create(operands=operands, result_types=types, properties=op.properties, attributes=kept)
        return self._builder.insert(made).results

    def _same(self, op: Operation) -> Sequence[SSAValue]:
        """An op that does the same to the dimensions before the last."""
        return self._like(op, [self._of(operand) for operand in op.operands])

    def _along_axis(self, op: ReduceOp | ScanOp) -> Sequence[SSAValue]:
        lifted = type(op).create(
            operands=[self._of(operand) for operand in op.operands],
            result_types=[self._type(result.type) for result in op.results],
            properties=op.properties,
            regions=[op.combine.clone()],
        )
        return self._builder.insert(lifted).results

    def _id(self, op: GetProgramIdOp) -> Sequence[SSAValue]:
        return [self._from(self._first)]

    def _remainder(self, op: arith.RemSIOp) -> Sequence[SSAValue]:
        """That by the length of a row counts on, as the id does."""
        if op.rhs is not self._lift.row or not is_program_id(op.lhs, self._lift.axis):
            return self._elementwise(op)
        return [self._from(self._builder.value(arith.RemSIOp(self._first, _again(self._builder, self._lift.row))))]

    def _splat(self, op: SplatOp) -> Sequence[SSAValue]:
        return [self._of(op.src, shape_of(op.result.type))]

    def _unsplat(self, op: UnsplatOp) -> Sequence[SSAValue]:
        return [self._builder.value(ReshapeOp(self._of(op.src), (self._lift.count,)))]

    def _trans(self, op: TransOp) -> Sequence[SSAValue]:
        return [self._builder.value(TransOp(self._of(op.src), (*op.permutation, len(op.permutation))))]

    def _mask(self, op: LoadOp | StoreOp) -> SSAValue:
        there = self._repeated(self._is_there, (*shape_of(op.ptr.type), self._lift.count))
        return there if op.mask is None else self._builder.value(arith.AndIOp(self._of(op.mask), there))

    def _load(self, op: LoadOp) -> Sequence[SSAValue]:
        other = self._of(op.other) if op.other is not None else None
        return self._builder.insert(with_policy(LoadOp(self._of(op.ptr), self._mask(op), other), op)).results

    def _store(self, op: StoreOp) -> Sequence[SSAValue]:
        store = StoreOp(self._of(op.ptr), self._of(op.value), self._mask(op))
        return self._builder.insert(with_policy(store, op)).results

    def _for(self, op: scf.ForOp) -> Sequence[SSAValue]:
        bounds = [self._values.get(value, value) for value in (op.lb, op.ub, op.step)]
        carried = [
            self._as(argument, first) for argument, first in zip(op.body.block.args[1:], op.iter_args, strict=True)
        ]
        block = Block(arg_types=[op.body.block.args[0].type, *(value.type for value in carried)])
        loop = scf.ForOp(*bounds, carried, Region(block))
        loop.attributes.update(op.attributes)
        self._builder.insert(loop)
        self._region(op.body.block, block, op.results)
        return loop.results

    def _if(self, op: scf.IfOp) -> Sequence[SSAValue]:
        if op.cond in self._lift.varying:
            return self._both(op)
        regions = [Region([Block()] if region.blocks else []) for region in op.regions]
        types = [self._type(result.type) if result in self._lift.varying else result.type for result in op.results]
        branch = self._builder.insert(scf.IfOp(self._values.get(op.cond, op.cond), types, *regions))
        for old, new in zip(op.regions, regions, strict=True):
            if old.blocks:
                self._region(old.block, new.block, op.results)
        return branch.results

    def _both(self, op: scf.IfOp) -> Sequence[SSAValue]:
        """Both branches one after the other, each with the accesses of the programs that take it."""
        b, there, condition = self._builder, self._is_there, self._of(op.cond)
        otherwise = b.value(arith.XOrIOp(condition, b.constant(True, condition.type)))
        given = []
        for region, takes in zip(op.regions, (condition, otherwise), strict=True):
            if region.blocks:
                *ops, last = region.block.ops
                self._is_there = b.value(arith.AndIOp(there, takes))
                self.ops(ops)
                given.append([self._of(value) for value in last.operands])
        self._is_there = there
        return [self._selected(condition, *values) for values in zip(*given, strict=True)] if op.results else []

    def _selected(self, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
        return self._builder.value(SelectOp(self._repeated(condition, shape_of(x.type)), x, y))

    def _region(self, old: Block, new: Block, results: Sequence[SSAValue]) -> None:
        """Build a block that gives the results of a loop or branch."""
        for before, after in zip(old.args, new.args, strict=True):
            after.name_hint = before.name_hint
            self._values[before] = after
        *ops, last = old.ops
        with self._builder.at(new):
            self.ops(ops)
            given = [self._as(result, value) for result, value in zip(results, last.operands, strict=True)]
            self._builder.insert(scf.YieldOp(*given))

    def _as(self, place: SSAValue, value: SSAValue) -> SSAValue:
        """A value for a place that varies or not."""
        return self._of(value) if place in self._lift.varying else self._values.get(value, value)


def with_policy(new: LoadOp | StoreOp, op: LoadOp | StoreOp) -> LoadOp | StoreOp:
    """An access that goes through the caches as another one does."""
    new.properties |= {"cache": op.cache, "evict": op.evict}
    return new


def _is_plain(lift: Lift, op: LoadOp) -> bool:
    return not op.is_volatile.value.data and not is_block_pointer(op.ptr.type)


def _goes_to_several(lift: Lift, op: StoreOp) -> bool:
    """Programs that store different values to one place would be different elements of a tile at one place."""
    return op.ptr in lift.varying and not is_block_pointer(op.ptr.type)


def _is_closed(lift: Lift, op: ReduceOp | ScanOp) -> bool:
    """Whether the region computes with its arguments alone."""
    known = {*op.combine.block.args, *(result for inner in op.combine.block.ops for result in inner.results)}
    return all(operand in known for inner in nested_ops(op)[1:] for operand in inner.operands)


def _has_equal_bounds(lift: Lift, op: scf.ForOp) -> bool:
    return lift.varying.isdisjoint((op.lb, op.ub, op.step))


def _can_take_both(lift: Lift, op: scf.IfOp) -> bool:
    """Programs that go different ways take both, in which nothing takes long."""
    return op.cond not in lift.varying or not any(
        isinstance(inner, scf.ForOp | scf.WhileOp) for inner in nested_ops(op)
    )


def _always(lift: Lift, op: Operation) -> bool:
    return True


_RULES: Mapping[type[Operation], Callable[[_Lifted, Operation], Sequence[SSAValue]]] = {
    GetProgramIdOp: _Lifted._id,
    arith.RemSIOp: _Lifted._remainder,
    SplatOp: _Lifted._splat,
    UnsplatOp: _Lifted._unsplat,
    TransOp: _Lifted._trans,
    **dict.fromkeys((BroadcastOp, ExpandDimsOp, ReshapeOp), _Lifted._same),
    **dict.fromkeys((ReduceOp, ScanOp), _Lifted._along_axis),
    LoadOp: _Lifted._load,
    StoreOp: _Lifted._store,
    scf.ForOp: _Lifted._for,
    scf.IfOp: _Lifted._if,
}
_CONDITIONS: Mapping[type[Operation], Callable[[Lift, Operation], bool]] = {
    **dict.fromkeys((GetProgramIdOp, SplatOp, UnsplatOp, TransOp, BroadcastOp, ExpandDimsOp, ReshapeOp), _always),
    **dict.fromkeys((ReduceOp, ScanOp), _is_closed),
    LoadOp: _is_plain,
    StoreOp: _goes_to_several,
    scf.ForOp: _has_equal_bounds,
    scf.IfOp: _can_take_both,
    scf.YieldOp: _always,
}
