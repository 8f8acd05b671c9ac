"""Runs neighbouring programs in step where they are neighbours in memory, and the elements of one's tile are not.

                                                    if num_programs(0) < 16: ...
    p = program_id(0)                               elif program_id(0) % 32 == 0:
    x = load(x_ptr + i * n + p)                         p = program_id(0) + arange(0, 32)
    store(y_ptr + p, sum(x))                 ->         x = load(x_ptr + i[:, None] * n + p[None, :], is_there)
                                                        store(y_ptr + p, sum(x, 0), is_there)

A program that has one column reads an element of every line of the cache that it touches, and the next program reads
the line again: sums over the columns of 1000 x 777 took ten times as long as torch's. The first of 32 does the work of
all of them that are in the grid (`is_there`), the others do nothing. Where there are few each does its own: softmax of
4,000 rows took 28 times as long of one column in step, twice as long of 8, and 0.6 of it of 16.

Programs come in no order; those that are in some order with others, print or assert are left alone, and so are those
that multiply matrices, or whose loops do not run equally often. Those of one row of a flat grid run in step as well:

    p % n + (p // n * m + i) * n            programs of one row of n
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial, coordinate
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.program_variance import is_row_number, varying_values
from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import GLOBAL, effects_inside
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.program import GetProgramIdOp
from deuteron.ir.types import MAX_TILE_ELEMENTS, byte_width_of, i32, num_elements_of, pointee_of, shape_of
from deuteron.passes.optimisation import Optimisation
from deuteron.passes.tile.grouping.lift_programs import Lift
from deuteron.passes.tile.grouping.widen_programs import Widening, find_widening

# A line of the cache would do. With two of them columns take 0.8 to 1.0 of that, with four 0.6 to 1.8.
ROW_BYTES = 128
TIMES_OF_LOOP = 8  # that a loop is taken to run; not measured
# Of elements that become neighbours, where others that were are exchanged in registers: transposes of 1024 x 1024 by
# rows or columns are 10 to 20 times as fast, of 300 x 500 0.7 to 1.6.
GAIN = 4


@dataclass(frozen=True)
class GroupPrograms(Optimisation):
    """Runs programs in step that are neighbours in memory."""

    name = "group-programs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if not func.is_private and _only_loads_and_stores(func):
                _group(func)


def _only_loads_and_stores(func: FuncOp) -> bool:
    """Whether programs do nothing but load and store."""
    return all(effect.resource is GLOBAL and isinstance(op, LoadOp | StoreOp) for op, effect in effects_inside(func))


def _group(func: FuncOp) -> None:
    chosen = _most_gained(func, list(_lifts(func)))
    if chosen is not None and chosen.can_lift(func, MAX_TILE_ELEMENTS):
        _lift_body(func, chosen)
        return
    widening = next(_widenings(func), None)
    if widening is not None:
        _lift_body(func, widening)


def _widenings(func: FuncOp) -> Iterator[Widening]:
    """Those that make short rows of neighbours in memory longer."""
    polynomials = TilePolynomials()
    for axis in _grid_axes(func):
        widening = find_widening(func, axis, _count(func), MAX_TILE_ELEMENTS)
        if widening is not None and _has_short_rows(func, widening, polynomials):
            yield widening


def _has_short_rows(func: FuncOp, widening: Widening, polynomials: TilePolynomials) -> bool:
    """Whether what is accessed has neighbours along the dimension that becomes longer, and along no other one: tiles of
    8 x 8 that are transposed take half of the time of 8 x 32.
    """
    followed = set()
    for op in _accesses(func):
        dimension = widening.dimensions.get(op.ptr)
        pointer = polynomials.of(op.ptr) if dimension is not None else None
        axes = _long_axes(op) if pointer is not None else ()
        followed.update(axis == dimension for axis in axes if abs(pointer.factor_of((coordinate(axis),))) == 1)
    return followed == {True}


def _grid_axes(func: FuncOp) -> list[int]:
    return sorted({op.axis.value.data for op in nested_ops(func, GetProgramIdOp)})


def _lifts(func: FuncOp) -> Iterator[Lift]:
    """Those of programs along each axis; then those of programs of one row."""
    count = _count(func)
    for axis in _grid_axes(func):
        yield Lift(axis, count, varying_values(func, axis))
    for axis, row in dict.fromkeys(_rows(func, count)):
        divisors = dict.fromkeys(op.rhs for op in nested_ops(func, arith.DivSIOp) if is_row_number(op, axis, row))
        yield Lift(axis, count, varying_values(func, axis, row), row, tuple(divisors))


def _rows(func: FuncOp, least: int) -> Iterator[tuple[int, SSAValue]]:
    """The axes whose ids have a remainder by an argument, or by a number that is not small, and that."""
    for op in nested_ops(func, arith.RemSIOp):
        is_long = (constant_value(op.rhs) or 0) >= least or op.rhs in func.args
        if isinstance(op.lhs.owner, GetProgramIdOp) and op.rhs.type == i32 and is_long:
            yield op.lhs.owner.axis.value.data, op.rhs


def _lift_body(func: FuncOp, lift: Lift) -> None:
    *ops, last = func.body.block.ops
    builder = Builder.before(last)
    alone, together, body = Block(), Block(), Block()
    builder.insert(scf.IfOp(lift.are_few(builder), [], Region(alone), Region(together)))
    with builder.at(together):
        builder.insert(scf.IfOp(lift.is_first(builder), [], Region(body)))
        builder.insert(scf.YieldOp())
    with builder.at(body):
        lift.lift(ops, builder)
        builder.insert(scf.YieldOp())
    for op in ops:
        op.detach()
        alone.add_op(op)
    with builder.at(alone):
        builder.insert(scf.YieldOp())


def _count(func: FuncOp) -> int:
    """How many programs have a row of the narrowest elements."""
    return ROW_BYTES // min(map(_width, _accesses(func)), default=ROW_BYTES)


def _width(op: LoadOp | StoreOp) -> int:
    return byte_width_of(pointee_of(op.ptr.type))


def _accesses(func: FuncOp) -> list[LoadOp | StoreOp]:
    return nested_ops(func, (LoadOp, StoreOp))


def _most_gained(func: FuncOp, lifts: Sequence[Lift]) -> Lift | None:
    """That which makes neighbours of more bytes than it moves apart, if there is one."""
    polynomials = TilePolynomials()
    gains = [sum(_gain(op, lift, polynomials) * _num_bytes(op, func) for op in _accesses(func)) for lift in lifts]
    most = max(gains, default=0)
    return lifts[gains.index(most)] if most > 0 else None


def _gain(op: LoadOp | StoreOp, lift: Lift, polynomials: TilePolynomials) -> int:
    """More than 0 where programs are neighbours and the elements of a tile are not, and less where it is the other way
    around.
    """
    pointer = polynomials.of(op.ptr) if op.ptr in lift.varying else None
    if pointer is None:
        return 0
    follows = any(abs(pointer.factor_of((coordinate(axis),))) == 1 for axis in _long_axes(op))
    return GAIN * (_distance(pointer, lift) == 1) - follows


def _distance(pointer: Polynomial, lift: Lift) -> int | None:
    """How many elements apart programs are along an axis; None: not known."""
    varying = {monomial: factor for monomial, factor in pointer if any(atom.value in lift.varying for atom in monomial)}
    places = [(atom, factor) for (atom, *others), factor in varying.items() if not others]
    is_known = len(places) == len(varying) == 1 and _grid_axis(places[0][0]) == lift.axis
    return places[0][1] if is_known else None


def _grid_axis(atom: Atom) -> int | None:
    """The axis along which a scalar counts programs, or counts them from 0 again and again."""
    op = atom.value.owner if atom.value is not None else None
    if isinstance(op, arith.RemSIOp):
        op = op.lhs.owner
    return op.axis.value.data if isinstance(op, GetProgramIdOp) else None


def _long_axes(op: LoadOp | StoreOp) -> Iterator[int]:
    return (axis for axis, extent in enumerate(shape_of(op.ptr.type)) if extent > 1)


def _num_bytes(op: LoadOp | StoreOp, func: FuncOp) -> int:
    """What a program moves, where each loop runs some times."""
    times, around = 1, op.parent_op()
    while around is not func:
        times *= TIMES_OF_LOOP if isinstance(around, scf.ForOp | scf.WhileOp) else 1
        around = around.parent_op()
    times *= 2 if isinstance(op, StoreOp) else 1  # a line is read before, and written after
    return times * num_elements_of(op.ptr.type) * _width(op)
