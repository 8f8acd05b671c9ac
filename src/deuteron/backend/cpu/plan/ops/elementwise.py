"""Arithmetic, mathematics, conversions, and what is the same for a whole program."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from deuteron.backend.cpu.plan.ops.declaration import (
    FLOAT_WEIGHT,
    INDEX_WEIGHT,
    IRREGULAR,
    OFFSET_BITS,
    UNKNOWN,
    Declaration,
    Lazy,
    Step,
)
from deuteron.ir import casts
from deuteron.ir.arith import CmpFOp, CmpIOp, Math, SelectOp, constant_value
from deuteron.ir.tt import convert
from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.types import bit_width_of, is_float

WIDENING = (casts.ExtSIOp, casts.ExtUIOp)

# Estimated, not measured (see declaration.py).
_DIVISION = 8.0
_CALL = 16.0  # of a mathematical function: a polynomial, mostly


class _Function(Lazy):
    """A mathematical function: it costs a call on floats."""

    def weight(self, op: Operation) -> float:
        return _CALL if is_float(op.results[0].type) else INDEX_WEIGHT


def add(op: Operation, steps: Sequence[Step]) -> Step:
    return UNKNOWN if UNKNOWN in steps else steps[0] + steps[1]


def widen(op: Operation, steps: Sequence[Step]) -> Step:
    return steps[0] if is_offset(op.operands[0]) or steps[0] == 0 else IRREGULAR


def is_offset(value: SSAValue) -> bool:
    """Whether integers are taken not to wrap around."""
    return bit_width_of(value.type) >= OFFSET_BITS


def _constant(op: Operation, steps: Sequence[Step]) -> Step:
    return IRREGULAR if constant_value(op.result) is None else 0


def _subtract(op: Operation, steps: Sequence[Step]) -> Step:
    return UNKNOWN if UNKNOWN in steps else steps[0] - steps[1]


def _multiply(op: Operation, steps: Sequence[Step]) -> Step:
    """By a number that is the same along the axis."""
    if 0 not in steps:
        return IRREGULAR
    factor = constant_value(op.operands[list(steps).index(0)])
    step = steps[1 - list(steps).index(0)]
    return UNKNOWN if factor is None or step == UNKNOWN else step * factor


_SIMPLE = (
    arith.AddUIExtendedOp,
    arith.MulUIExtendedOp,
    arith.MulSIExtendedOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    arith.MinSIOp,
    arith.MaxSIOp,
    arith.MinUIOp,
    arith.MaxUIOp,
    arith.AddfOp,
    arith.SubfOp,
    arith.MulfOp,
    arith.NegfOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.ShLIOp,
    arith.ShRUIOp,
    arith.ShRSIOp,
    arith.MinimumfOp,
    arith.MinnumfOp,
    arith.MaximumfOp,
    arith.MaxnumfOp,
    arith.BitcastOp,
    arith.IndexCastOp,
    arith.ExtFOp,
    arith.TruncFOp,
    CmpIOp,
    CmpFOp,
    SelectOp,
    casts.SIToFPOp,
    casts.UIToFPOp,
    casts.FPToSIOp,
    casts.FPToUIOp,
    convert.BitcastOp,
    convert.PtrToIntOp,
    convert.IntToPtrOp,
    convert.FpToFpOp,
    convert.ClampFOp,
    convert.MulHiUIOp,
    GetProgramIdOp,
    GetNumProgramsOp,
)

DECLARATIONS: dict[type[Operation], Declaration] = {
    **dict.fromkeys(_SIMPLE, Lazy()),
    **dict.fromkeys(Math.operations, _Function()),
    **dict.fromkeys((math.AbsFOp, math.FmaOp, math.FloorOp, math.CeilOp), Lazy(FLOAT_WEIGHT)),
    **dict.fromkeys((arith.DivUIOp, arith.DivSIOp, arith.RemUIOp, arith.RemSIOp, arith.DivfOp), Lazy(_DIVISION)),
    **dict.fromkeys((math.SqrtOp, convert.PreciseSqrtOp, convert.PreciseDivFOp), Lazy(_DIVISION)),
    **dict.fromkeys(WIDENING, Lazy(step=widen)),
    casts.TruncIOp: Lazy(),  # it wraps around: (first + i).to(int32)
    casts.RemFOp: Lazy(_CALL),
    ExternElementwiseOp: Lazy(_CALL),
    arith.ConstantOp: Lazy(INDEX_WEIGHT, step=_constant),
    arith.AddiOp: Lazy(step=add),
    arith.SubiOp: Lazy(step=_subtract),
    arith.MuliOp: Lazy(step=_multiply),
}
