"""Folds of `arith`, `math` and conversions: operations on constants, neutral and absorbing operands, selects.

Constants are computed by the interpreter's rules, which define what they are, or, the most frequent ones, to the same
numbers without NumPy (exact.py). Functions whose value a target may approximate (exp, log, sin ...) are left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from math import copysign

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.axis.ranges import largest_in_any_grid
from deuteron.ir import casts
from deuteron.ir.arith import CmpFOp, CmpIOp, SelectOp, constant_value, has_constants
from deuteron.ir.builder import Builder
from deuteron.ir.rule_table import Rule, RuleTable
from deuteron.ir.tt.convert import BitcastOp, FpToFpOp, MulHiUIOp
from deuteron.ir.types import bit_width_of, is_pointer, is_tile
from deuteron.passes.tile.folding.exact import exact

FOLDS = RuleTable()

# Of "lt", "le", with the operands exchanged.
_OF_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

Folded = Sequence[SSAValue] | None


def fold_constants(op: Operation, keeps_nan: bool = False) -> Folded:
    """The constant that an elementwise op of constants is. A tile of NaN stays an op: no `dense<NaN>` is a splat; and,
    `keeps_nan`, so does a scalar.
    """
    if not all(has_constants(result.type) for result in op.results):
        return None
    numbers = [constant_value(operand) for operand in op.operands]
    if None in numbers or any(is_pointer(operand.type) for operand in op.operands):
        return None
    number = _computed(op, numbers)
    if number != number and (keeps_nan or is_tile(op.results[0].type)):
        return None
    return [Builder.before(op).constant(number, op.results[0].type)]


def _computed(op: Operation, numbers: Sequence[bool | int | float]) -> bool | int | float:
    number = exact(op, numbers)
    if number is not None:
        return number
    from deuteron.passes.tile.folding.computed import computed  # deferred: brings NumPy, for what few kernels have

    return computed(op, numbers)


def _zero(op: Operation) -> Folded:
    return [Builder.before(op).constant(0, op.results[0].type)]


def _is_all_ones(value: SSAValue) -> bool:
    return constant_value(value) == (1 if bit_width_of(value.type) == 1 else -1)


def _commuted(fold: Callable[[Operation, SSAValue, SSAValue], Folded]) -> Rule:
    """A rule that looks at a constant on either side: `fold(op, variable, constant)`."""

    def rule(op: Operation) -> Folded:
        lhs, rhs = op.operands
        return fold_constants(op) or fold(op, lhs, rhs) or fold(op, rhs, lhs)

    return rule


def _with_constant_rhs(fold: Callable[[Operation, SSAValue, SSAValue], Folded]) -> Rule:
    """A rule that looks at a constant on the right: `fold(op, lhs, rhs)`."""
    return lambda op: fold_constants(op) or fold(op, *op.operands)


def _fold_addi(op: Operation, x: SSAValue, constant: SSAValue) -> Folded:
    """x - y + y is x: of taps at `i + tap - (TAPS - 1)`, the last is aligned as i is then."""
    if isinstance(x.owner, arith.SubiOp) and _are_equal(x.owner.rhs, constant):
        return [x.owner.lhs]
    return [x] if constant_value(constant) == 0 else None


def _fold_subi(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Folded:
    if lhs is rhs:
        return _zero(op)
    return [lhs] if constant_value(rhs) == 0 else _other_summand(lhs.owner, rhs)


def _other_summand(op: object, summand: SSAValue) -> Folded:
    """x, where an op is x + y or y + x."""
    if not isinstance(op, arith.AddiOp):
        return None
    return next(([x] for x, y in permutations(op.operands) if _are_equal(y, summand)), None)


def _are_equal(one: SSAValue, other: SSAValue) -> bool:
    number = constant_value(one)
    return one is other or number is not None and number == constant_value(other)


def _fold_muli(op: Operation, x: SSAValue, constant: SSAValue) -> Folded:
    number = constant_value(constant)
    return [x] if number == 1 else [constant] if number == 0 else None


def _fold_division(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Folded:
    return [lhs] if constant_value(rhs) == 1 and bit_width_of(lhs.type) > 1 else None


def _fold_remainder(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Folded:
    return _zero(op) if constant_value(rhs) == 1 and bit_width_of(lhs.type) > 1 else None


def _fold_shift(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Folded:
    return [lhs] if constant_value(rhs) == 0 else None


def _fold_andi(op: Operation, x: SSAValue, constant: SSAValue) -> Folded:
    if x is constant or _is_all_ones(constant):
        return [x]
    return [constant] if constant_value(constant) == 0 else None


def _fold_ori(op: Operation, x: SSAValue, constant: SSAValue) -> Folded:
    if x is constant or constant_value(constant) == 0:
        return [x]
    return [constant] if _is_all_ones(constant) else None


def _fold_xori(op: Operation, x: SSAValue, constant: SSAValue) -> Folded:
    if x is constant:
        return _zero(op)
    return [x] if constant_value(constant) == 0 else None


def _fold_extremum(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Folded:
    return [lhs] if lhs is rhs else None


def _is_negative_zero(value: SSAValue) -> bool:
    number = constant_value(value)
    return number == 0 and copysign(1.0, number) < 0


def _fold_addf(op: Operation, x: SSAValue, constant: SSAValue) -> Folded:
    """-0.0 is neutral; 0.0 is not, for -0.0 + 0.0 is 0.0."""
    return [x] if _is_negative_zero(constant) else None


def _fold_subf(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Folded:
    return [lhs] if constant_value(rhs) == 0 and not _is_negative_zero(rhs) else None


def _fold_mulf(op: Operation, x: SSAValue, constant: SSAValue) -> Folded:
    return [x] if constant_value(constant) == 1 else None


def _fold_divf(op: Operation, lhs: SSAValue, rhs: SSAValue) -> Folded:
    return [lhs] if constant_value(rhs) == 1 else None


_TRUE_OF_EQUAL = {"eq", "sle", "sge", "ule", "uge"}


@FOLDS.on(CmpIOp)
def fold_cmpi(op: CmpIOp) -> Folded:
    if op.lhs is op.rhs:
        return [Builder.before(op).constant(op.predicate_name in _TRUE_OF_EQUAL, op.result.type)]
    return fold_constants(op) or _fold_known_order(op)


def _fold_known_order(op: CmpIOp) -> Folded:
    """A comparison with a constant, where all that an integer can be is on one side: a mask that is always on."""
    value, limit, predicate = op.lhs, constant_value(op.rhs), op.predicate_name.lstrip("su")
    if limit is None:
        value, limit, predicate = op.rhs, constant_value(op.lhs), _OF_SWAPPED[predicate]
    most = largest_in_any_grid(value) if limit is not None and limit >= 0 else None
    found = None if most is None else _compared(most, limit, predicate)
    return None if found is None else [Builder.before(op).constant(found, op.result.type)]


def _compared(most: int, limit: int, predicate: str) -> bool | None:
    """Whether each number from 0 to `most` compares so with a limit, or none does; neither: None."""
    if most < limit:
        return predicate in ("lt", "le", "ne")
    if most == limit and predicate in ("le", "gt"):
        return predicate == "le"
    if limit == 0 and predicate in ("lt", "ge"):
        return predicate == "ge"
    return None


@FOLDS.on(SelectOp)
def fold_select(op: SelectOp) -> Folded:
    condition = constant_value(op.condition)
    if condition is not None:
        return [op.true_value if condition else op.false_value]
    if op.true_value is op.false_value:
        return [op.true_value]
    true, false = constant_value(op.true_value), constant_value(op.false_value)
    if op.condition.type == op.result.type and bit_width_of(op.result.type) == 1 and (true, false) == (1, 0):
        return [op.condition]
    return None


@FOLDS.on(BitcastOp)
def fold_bitcast(op: BitcastOp) -> Folded:
    """Of NaNs a constant is one: what bits it was made of would be lost."""
    return [op.src] if op.src.type == op.result.type else fold_constants(op, keeps_nan=True)


FOLDS.on(arith.AddiOp)(_commuted(_fold_addi))
FOLDS.on(arith.SubiOp)(_with_constant_rhs(_fold_subi))
FOLDS.on(arith.MuliOp)(_commuted(_fold_muli))
FOLDS.on(arith.AndIOp)(_commuted(_fold_andi))
FOLDS.on(arith.OrIOp)(_commuted(_fold_ori))
FOLDS.on(arith.XOrIOp)(_commuted(_fold_xori))
FOLDS.on(arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp)(
    _with_constant_rhs(_fold_division)
)
FOLDS.on(arith.RemSIOp, arith.RemUIOp)(_with_constant_rhs(_fold_remainder))
FOLDS.on(arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)(_with_constant_rhs(_fold_shift))
FOLDS.on(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp)(_with_constant_rhs(_fold_extremum))
FOLDS.on(arith.AddfOp)(_commuted(_fold_addf))
FOLDS.on(arith.SubfOp)(_with_constant_rhs(_fold_subf))
FOLDS.on(arith.MulfOp)(_commuted(_fold_mulf))
FOLDS.on(arith.DivfOp)(_with_constant_rhs(_fold_divf))
FOLDS.on(arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp)(_with_constant_rhs(_fold_extremum))
FOLDS.on(CmpFOp, arith.NegfOp, arith.ExtFOp, arith.TruncFOp, FpToFpOp, MulHiUIOp, *casts.OPS)(fold_constants)
FOLDS.on(math.AbsFOp, math.AbsIOp, math.FloorOp, math.CeilOp, math.TruncOp, math.RoundEvenOp, math.CtPopOp)(
    fold_constants
)
