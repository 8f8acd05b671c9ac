"""Widens the tile of a program over those of its neighbours, where a dimension of it goes on from program to program.

    p = program_id(0)                               p = program_id(0)                               the first of 4
    c = splat(p * 8) + arange(0, 8)                 c = splat(p * 8) + arange(0, 32)
    x = load(x_ptr + i[:, None] * n + c[None, :])   x = load(..., arange(0, 32) < 8 * num_left)     64 x 32, not 64 x 8
    store(y_ptr + c, sum(x, 0))                     store(y_ptr + c, sum(x, 0), ...)                32

Nothing else may depend on the program: what does is the number of the first element of a tile, or a tile that has such
a dimension. Elements of it come together in no other way than in the accesses: it is not reduced, scanned or reshaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Operation, SSAValue

from deuteron.analysis.program_variance import carried_by, given_by, varying_values
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.tt.reduce import ReduceOp, ScanOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp, TransOp
from deuteron.ir.ttg.inference import is_elementwise
from deuteron.ir.types import element_type_of, i32, is_block_pointer, is_tile, num_elements_of, shape_of, tile
from deuteron.passes.tile.grouping.lift_programs import Lift
from deuteron.passes.tile.grouping.program_builder import RULES, ProgramBuilder, same_op


@dataclass(frozen=True)
class Widening(Lift):
    """So many programs along an axis of the grid that become one; `extent`: elements of one along the dimension that
    goes on; `dimensions`: which one that is of each tile that has it.
    """

    extent: int = 1
    dimensions: Mapping[SSAValue, int] = field(default_factory=dict)

    def lift(self, ops: Iterable[Operation], builder: Builder) -> None:
        _Widened(self, builder).ops(ops)


def find_widening(func: FuncOp, axis: int, row_elements: int, most_elements: int) -> Widening | None:
    """That of tiles of fewer elements than a row, along an axis of the grid; None where what programs do forbids it."""
    varying = varying_values(func, axis)
    extents = {extent for op in nested_ops(func) if (extent := _extent(op, axis)) is not None}
    if len(extents) != 1 or 2 * (extent := extents.pop()) > row_elements:
        return None
    count = row_elements // extent
    dimensions = _Dimensions(varying, axis, extent).of(func)
    if dimensions is None or any(count * num_elements_of(value.type) > most_elements for value in dimensions):
        return None
    return Widening(axis, count, varying, extent=extent, dimensions=dimensions)


def _extent(op: Operation, axis: int) -> int | None:
    """Of a tile that begins where the one of the program before ends."""
    is_first = isinstance(op, arith.MuliOp) and isinstance(op.lhs.owner, GetProgramIdOp)
    if not is_first or op.lhs.owner.axis.value.data != axis:
        return None
    extent = constant_value(op.rhs)
    return extent if extent is not None and extent > 1 and extent & (extent - 1) == 0 else None


class _Dimensions:
    """Finds the dimension that goes on of all that varies. What loops carry back is known only when all was looked at,
    so that they are looked at again until nothing comes.
    """

    def __init__(self, varying: set[SSAValue], axis: int, extent: int):
        self._varying, self._axis, self._extent = varying, axis, extent
        self._found: dict[SSAValue, int] = {}
        self._firsts: set[SSAValue] = set()  # the numbers of first elements, and what they are computed of

    def of(self, func: FuncOp) -> Mapping[SSAValue, int] | None:
        ops, count = nested_ops(func)[1:], -1
        while count != len(self._found):
            count = len(self._found)
            for op in ops:
                self._look_at(op)
        is_known = all(value in self._found or value in self._firsts for value in self._varying)
        return self._found if is_known and all(self._holds(op) for op in ops) else None

    def _look_at(self, op: Operation) -> None:
        if _extent(op, self._axis) == self._extent:
            self._firsts.update((op.lhs, *op.results))
        elif isinstance(op, SplatOp) and op.src in self._firsts and op.src.owner.name == arith.MuliOp.name:
            self._firsts.add(op.result)
        elif isinstance(op, scf.ForOp):
            for carried in carried_by(op):
                self._enter(carried, carried)
        elif isinstance(op, scf.IfOp):
            for given in given_by(op):
                self._enter(given, given[-1:])
        elif (dimension := self._dimension(op)) is not None:
            self._found.update((result, dimension) for result in op.results if result in self._varying)

    def _enter(self, sources: Sequence[SSAValue], places: Sequence[SSAValue]) -> None:
        """Where a loop or branch carries what has such a dimension all of its places do."""
        known = [self._found[value] for value in sources if value in self._found]
        self._found.update((place, known[0]) for place in places if known and place in self._varying)

    def _dimension(self, op: Operation) -> int | None:
        """Of the results of an op; None: not known, or none, as after a reshape, or a reduction along it."""
        if isinstance(op, arith.AddiOp) and any(operand in self._firsts for operand in op.operands):
            return self._counted(*op.operands)
        known = [self._found[operand] for operand in op.operands if operand in self._found]
        if not known or not (type(op) in _CONDITIONS or is_elementwise(op)):
            return None
        if isinstance(op, ExpandDimsOp):
            return known[0] + (op.axis.value.data <= known[0])
        if isinstance(op, TransOp):
            return op.permutation.index(known[0])
        if isinstance(op, ReduceOp):
            return known[0] - (op.axis.value.data < known[0]) if op.axis.value.data != known[0] else None
        return known[0]

    def _counted(self, x: SSAValue, y: SSAValue) -> int | None:
        """The dimension along which a sum counts from a first element on."""
        numbers = y if x in self._firsts else x
        if x in self._varying and y in self._varying:
            return None
        while isinstance(numbers.owner, ExpandDimsOp):
            numbers = numbers.owner.src
        is_range = isinstance(numbers.owner, MakeRangeOp) and numbers.owner.start.value.data == 0
        is_range = is_range and shape_of(numbers.type) == (self._extent,)
        return shape_of(x.type).index(self._extent) if is_range else None

    def _holds(self, op: Operation) -> bool:
        """Whether an op does the same where the dimension is longer."""
        if self._varying.isdisjoint((*op.operands, *op.results)):
            return not op.regions or type(op) in _CONDITIONS or not self._varies_inside(op)
        if any(value in self._firsts for value in op.results):
            return True
        if any(value in self._firsts for value in op.operands):
            return isinstance(op, arith.AddiOp)
        condition = _CONDITIONS.get(type(op))
        return (
            condition(self, op) if condition is not None else is_elementwise(op) and not op.regions and self._meet(op)
        )

    def _varies_inside(self, op: Operation) -> bool:
        return any(not self._varying.isdisjoint((*one.operands, *one.results)) for one in nested_ops(op))

    def _meet(self, op: Operation) -> bool:
        """Whether all that an op computes with has the dimension, or is the same along it."""
        dimensions = {self._found[value] for value in (*op.operands, *op.results) if value in self._found}
        return len(dimensions) == 1 and all(self._can_be_wide(value, *dimensions) for value in op.operands)

    def _can_be_wide(self, value: SSAValue, dimension: int) -> bool:
        """Whether a value is or can be computed with a longer dimension."""
        if value in self._varying:
            return self._found.get(value) == dimension
        if not is_tile(value.type) or constant_value(value) is not None:
            return is_tile(value.type)
        op = value.owner
        if isinstance(op, BroadcastOp):
            return shape_of(op.src.type)[dimension] == 1
        if isinstance(op, SplatOp):
            return True
        is_computed = isinstance(op, Operation) and is_elementwise(op) and op.operands and not op.regions
        return bool(is_computed) and all(self._can_be_wide(operand, dimension) for operand in op.operands)

    def _is_apart(self, op: ReduceOp | ScanOp) -> bool:
        inner = {value for one in nested_ops(op) for value in one.results} | set(op.combine.block.args)
        is_closed = all(operand in inner for one in nested_ops(op)[1:] for operand in one.operands)
        dimension = self._found.get(op.srcs[0])
        return (
            is_closed
            and dimension not in (None, op.axis.value.data)
            and all(self._can_be_wide(source, dimension) for source in op.srcs)
        )

    def _is_plain(self, op: LoadOp | StoreOp) -> bool:
        is_volatile = isinstance(op, LoadOp) and op.is_volatile.value.data
        return op.ptr in self._found and not is_volatile and not is_block_pointer(op.ptr.type) and self._meet(op)

    def _is_same(self, op: Operation) -> bool:
        return True

    def _repeats(self, op: BroadcastOp) -> bool:
        dimension = self._found[op.src]
        return shape_of(op.src.type)[dimension] == shape_of(op.result.type)[dimension]

    def _has_equal_bounds(self, op: scf.ForOp) -> bool:
        bounds_vary = not self._varying.isdisjoint((op.lb, op.ub, op.step))
        return not bounds_vary and all(self._fits(carried, carried[2]) for carried in carried_by(op))

    def _goes_one_way(self, op: scf.IfOp) -> bool:
        return op.cond not in self._varying and all(self._fits(given, given[-1]) for given in given_by(op))

    def _fits(self, values: Sequence[SSAValue], place: SSAValue) -> bool:
        dimension = self._found.get(place)
        return dimension is None or all(self._can_be_wide(value, dimension) for value in values)


_CONDITIONS: Mapping[type[Operation], Callable[[_Dimensions, Operation], bool]] = {
    **dict.fromkeys((ExpandDimsOp, TransOp, scf.YieldOp), _Dimensions._is_same),
    BroadcastOp: _Dimensions._repeats,
    **dict.fromkeys((ReduceOp, ScanOp), _Dimensions._is_apart),
    **dict.fromkeys((LoadOp, StoreOp), _Dimensions._is_plain),
    scf.ForOp: _Dimensions._has_equal_bounds,
    scf.IfOp: _Dimensions._goes_one_way,
}


class _Widened(ProgramBuilder):
    """Programs whose tiles are one."""

    def __init__(self, widening: Widening, builder: Builder) -> None:
        super().__init__(builder)
        self._widening = widening
        self._numbers = builder.value(MakeRangeOp(0, widening.extent * widening.count))
        left = builder.value(arith.MuliOp(self._num_left(), builder.constant(widening.extent, i32)))
        self._is_there = builder.value(CmpIOp(self._numbers, self._splatted(left), "slt"))

    def _num_left(self) -> SSAValue:
        """How many programs there are from the first on, of those that become one."""
        b, axis = self._builder, self._widening.axis
        count = b.value(arith.SubiOp(b.value(GetNumProgramsOp(axis)), b.value(GetProgramIdOp(axis))))
        return b.value(arith.MinSIOp(count, b.constant(self._widening.count, i32)))

    def _splatted(self, scalar: SSAValue) -> SSAValue:
        return self._builder.value(SplatOp(scalar, shape_of(self._numbers.type)))

    def _changes(self, op: Operation) -> bool:
        dimensions = self._widening.dimensions
        return any(value in dimensions for one in nested_ops(op) for value in (*one.operands, *one.results))

    # -- values ---

    def _type(self, type: Attribute, dimension: int | None) -> Attribute:
        if dimension is None:
            return type
        shape = list(shape_of(type))
        shape[dimension] *= self._widening.count
        return tile(element_type_of(type), tuple(shape))

    def _type_of(self, value: SSAValue) -> Attribute:
        return self._type(value.type, self._widening.dimensions.get(value))

    def _operand(self, op: Operation, value: SSAValue) -> SSAValue:
        """As long as the others are."""
        known = (self._widening.dimensions.get(operand) for operand in op.operands)
        return self._of(value, next((dimension for dimension in known if dimension is not None), None))

    def _at(self, place: SSAValue, value: SSAValue) -> SSAValue:
        return self._of(value, self._widening.dimensions.get(place))

    def _there(self, op: LoadOp | StoreOp) -> SSAValue:
        return self._along(self._is_there, self._widening.dimensions[op.ptr], shape_of(self._type_of(op.ptr)))

    def _of(self, value: SSAValue, dimension: int | None) -> SSAValue:
        """A value with a longer dimension; None: as it is."""
        if value in self._widening.varying or dimension is None:
            return self._same(value)
        type, b, op = self._type(value.type, dimension), self._builder, value.owner
        number = constant_value(value)
        if number is not None:
            return b.constant(number, type)
        is_repeated = isinstance(op, SplatOp | BroadcastOp)
        operands = [self._same(operand) if is_repeated else self._of(operand, dimension) for operand in op.operands]
        return b.value(same_op(op, operands, [type]))

    def _along(self, value: SSAValue, dimension: int, shape: tuple[int, ...]) -> SSAValue:
        """A tile of one dimension as one of a tile of that shape."""
        for axis in range(len(shape)):
            value = value if axis == dimension else self._builder.value(ExpandDimsOp(value, axis))
        return value if shape_of(value.type) == shape else self._builder.value(BroadcastOp(value, shape))

    # -- rules ---

    def _otherwise(self, op: Operation) -> Sequence[SSAValue]:
        """The same op on longer operands."""
        return self._like(op, [self._operand(op, operand) for operand in op.operands])

    def _sum(self, op: arith.AddiOp) -> Sequence[SSAValue]:
        """That of a first element and a range is the one of a longer range."""
        if not self._widening.dimensions.keys().isdisjoint(op.operands):
            return self._otherwise(op)
        dimension, type = self._widening.dimensions[op.result], self._type_of(op.result)
        first = next(operand for operand in op.operands if operand in self._widening.varying)
        start = self._builder.value(SplatOp(self._values[first.owner.src], shape_of(type)))
        return [self._builder.value(arith.AddiOp(start, self._along(self._numbers, dimension, shape_of(type))))]

    rules = {**RULES, arith.AddiOp: _sum}
