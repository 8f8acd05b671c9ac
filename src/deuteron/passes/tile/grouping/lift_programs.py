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
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.analysis.program_variance import factors_of, is_in_branch, is_program_id, is_row_number
from deuteron.ir.arith import CmpIOp, SelectOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp, UnsplatOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import element_type_of, i32, is_block_pointer, num_elements_of, shape_of, tile
from deuteron.passes.tile.grouping.program_builder import RULES, ProgramBuilder


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


class _Lifted(ProgramBuilder):
    """Programs in step."""

    def __init__(self, lift: Lift, builder: Builder) -> None:
        super().__init__(builder)
        self._lift = lift
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

    def _changes(self, op: Operation) -> bool:
        return self._is_row_number(op) or any(map(self._lift._varies, nested_ops(op)))

    def _is_row_number(self, op: Operation) -> bool:
        return is_row_number(op, self._lift.axis, self._lift.row)

    # -- values ---

    def _type_of(self, value: SSAValue) -> Attribute:
        if value not in self._lift.varying:
            return value.type
        return tile(element_type_of(value.type), (*shape_of(value.type), self._lift.count))

    def _operand(self, op: Operation, value: SSAValue) -> SSAValue:
        return self._of(value)

    def _at(self, place: SSAValue, value: SSAValue) -> SSAValue:
        return self._of(value) if place in self._lift.varying else self._same(value)

    def _there(self, op: LoadOp | StoreOp) -> SSAValue:
        return self._repeated(self._is_there, (*shape_of(op.ptr.type), self._lift.count))

    def _of(self, value: SSAValue, shape: tuple[int, ...] | None = None) -> SSAValue:
        """A value with one more dimension; a scalar in the place of a tile of that shape."""
        shape, b = shape_of(value.type) if shape is None else shape, self._builder
        type = tile(element_type_of(value.type), (*shape, self._lift.count))
        if value in self._lift.varying:
            return self._repeated(self._values[value], shape_of(type))
        number = constant_value(value)
        if number is not None:
            return b.constant(number, type)
        source = self._same(value)
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

    def _otherwise(self, op: Operation) -> Sequence[SSAValue]:
        """What an elementwise op does."""
        shape = shape_of(op.results[0].type)
        return self._like(op, [self._of(operand, shape) for operand in op.operands])

    def _dimensions(self, op: Operation) -> Sequence[SSAValue]:
        """An op that does the same to the dimensions before the last."""
        return self._like(op, [self._of(operand) for operand in op.operands])

    def _id(self, op: GetProgramIdOp) -> Sequence[SSAValue]:
        return [self._from(self._first)]

    def _remainder(self, op: arith.RemSIOp) -> Sequence[SSAValue]:
        """That by the length of a row counts on, as the id does."""
        if op.rhs is not self._lift.row or not is_program_id(op.lhs, self._lift.axis):
            return self._otherwise(op)
        return [self._from(self._builder.value(arith.RemSIOp(self._first, _again(self._builder, self._lift.row))))]

    def _quotient(self, op: arith.DivSIOp) -> Sequence[SSAValue]:
        """The number of a row is that of its first program."""
        if not self._is_row_number(op):
            return self._otherwise(op)
        return [self._builder.value(arith.DivSIOp(self._first, self._same(op.rhs)))]

    def _splat(self, op: SplatOp) -> Sequence[SSAValue]:
        return [self._of(op.src, shape_of(op.result.type))]

    def _unsplat(self, op: UnsplatOp) -> Sequence[SSAValue]:
        return [self._builder.value(ReshapeOp(self._of(op.src), (self._lift.count,)))]

    def _trans(self, op: TransOp) -> Sequence[SSAValue]:
        return [self._builder.value(TransOp(self._of(op.src), (*op.permutation, len(op.permutation))))]

    def _if(self, op: scf.IfOp) -> Sequence[SSAValue]:
        return self._both(op) if op.cond in self._lift.varying else super()._if(op)

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

    rules = {
        **RULES,
        GetProgramIdOp: _id,
        arith.RemSIOp: _remainder,
        arith.DivSIOp: _quotient,
        SplatOp: _splat,
        UnsplatOp: _unsplat,
        TransOp: _trans,
        **dict.fromkeys((BroadcastOp, ExpandDimsOp, ReshapeOp), _dimensions),
        scf.IfOp: _if,
    }


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


_CONDITIONS: Mapping[type[Operation], Callable[[Lift, Operation], bool]] = {
    **dict.fromkeys((GetProgramIdOp, SplatOp, UnsplatOp, TransOp, BroadcastOp, ExpandDimsOp, ReshapeOp), _always),
    **dict.fromkeys((ReduceOp, ScanOp), _is_closed),
    LoadOp: _is_plain,
    StoreOp: _goes_to_several,
    scf.ForOp: _has_equal_bounds,
    scf.IfOp: _can_take_both,
    scf.YieldOp: _always,
}
