"""Starts programs with more to do first, where the trips of a loop grow with the program id: fewer are late at the end.

    %p = "tt.get_program_id"() <{axis = 0}>                 %n = "tt.get_num_programs"() <{axis = 0}>
    "scf.for"(0, %p * 128, 64) ({ ... dots ... })  ->   %p = %n - 1 - "tt.get_program_id"() <{axis = 0}>

A GPU starts programs by their ids, the first dimension fastest. Programs of causal attention have as much to do as
their rows have keys; the last to start run alone while other multiprocessors have nothing left. Programs that could
wait for others, by atomics or volatile loads, keep their order.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.ir.arith import constant_value
from deuteron.ir.builder import Builder
from deuteron.ir.effects import GLOBAL, ORDER, READ, WRITE, Kind, effects_inside
from deuteron.ir.nested import nested_ops
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.function import FuncOp, functions_in
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.types import i32
from deuteron.passes.optimisation import Optimisation

FASTEST = 0


class OrderPrograms(Optimisation):
    """Reverses the order in which programs start."""

    name = "order-programs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in functions_in(op):
            if _does_more_at_the_end(func) and not _may_wait(func):
                _reverse(func)


def _does_more_at_the_end(func: FuncOp) -> bool:
    """Whether a loop with dots has more trips in programs with a higher id."""
    known = TilePolynomials()
    grows = [_growth(known, loop) for loop in nested_ops(func, scf.ForOp) if _multiplies(loop)]
    return any(growth > 0 for growth in grows) and all(growth >= 0 for growth in grows)


def _multiplies(loop: scf.ForOp) -> bool:
    return bool(nested_ops(loop, DotOp))


def _growth(known: TilePolynomials, loop: scf.ForOp) -> Fraction:
    """How much longer the range of a loop is from one program to the next; 0 where that is not known."""
    distance = known.range_of(loop)
    return _slope(known, distance) if distance is not None else Fraction(0)


def _slope(known: TilePolynomials, polynomial: Polynomial) -> Fraction:
    alone = {atoms[0].value: factor for atoms, factor in polynomial if len(atoms) == 1}
    return sum((factor * _slope_of(known, value) for value, factor in alone.items()), Fraction())


def _slope_of(known: TilePolynomials, value: SSAValue) -> Fraction:
    """Of an atom. A minimum or a maximum grows as far as one of its operands does, if none falls."""
    op = value.owner
    if _is_fastest(op):
        return Fraction(1)
    if isinstance(op, arith.DivSIOp) and constant_value(op.rhs):
        return _slope(known, known.of(op.lhs)) / constant_value(op.rhs)
    if isinstance(op, arith.MinSIOp | arith.MaxSIOp):
        low, high = sorted(_slope(known, known.of(operand)) for operand in op.operands)
        return Fraction() if low < 0 < high else high if high else low
    return Fraction()


def _is_fastest(op: object) -> bool:
    return isinstance(op, GetProgramIdOp) and op.axis.value.data == FASTEST


def _may_wait(func: FuncOp) -> bool:
    """Whether an op may see what another program writes meanwhile: one that reads in order, or writes what it reads."""
    kinds: dict[Operation, set[Kind]] = defaultdict(set)
    for op, effect in effects_inside(func):
        if effect.resource is GLOBAL:
            kinds[op].add(effect.kind)
    return any(READ in found and (ORDER in found or (WRITE in found and op.results)) for op, found in kinds.items())


def _reverse(func: FuncOp) -> None:
    for op in [op for op in nested_ops(func) if _is_fastest(op)]:
        b = Builder.after(op)
        last = b.value(arith.SubiOp(b.value(GetNumProgramsOp(FASTEST)), b.constant(1, i32)))
        reverse = b.insert(arith.SubiOp(last, op.result))
        op.result.replace_uses_with_if(reverse.result, lambda use, reverse=reverse: use.operation is not reverse)
        reverse.result.name_hint = op.result.name_hint
