"""What ops give for constants where that takes none of the interpreter's rules, which bring NumPy: a tenth of a second.

exact(%s = arith.muli(%a, %b) : i32, [1024, 3])         3072
exact(%h = arith.truncf(%x) : f16, [0.0])               0.0
exact(%d = arith.subf(%a, %b) : f32, [0.0, inf])        -inf
exact(%d = arith.subf(%a, %b) : f32, [1.0, 1e-9])       None: it is rounded, which the interpreter does
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from ctypes import c_float
from math import copysign

from xdsl.dialects import arith
from xdsl.ir import Operation

from deuteron.ir import casts
from deuteron.ir.tt.convert import FpToFpOp
from deuteron.ir.types import bit_width_of, element_type_of, f32, is_float

Number = int | float


def exact(op: Operation, numbers: Sequence[Number]) -> Number | None:
    """The number that an op's result is, where its operands are these; None where it is not known without NumPy."""
    rule = _RULES.get(type(op))
    return None if rule is None else rule(op, *numbers)


def _of_integers(compute: Callable[[int, int], int]) -> Callable[..., Number | None]:
    """Of signed numbers of more than one bit: they wrap around."""

    def rule(op: Operation, a: int, b: int) -> int | None:
        width = bit_width_of(op.results[0].type)
        half = 1 << width - 1
        return None if width == 1 else (compute(a, b) + half) % (2 * half) - half

    return rule


def _of_floats(compute: Callable[[float, float], float]) -> Callable[..., Number | None]:
    """Of f32, computed in f64: where f32 has that number, it is what f32 rounds the true one to."""

    def rule(op: Operation, a: float, b: float) -> float | None:
        number = compute(a, b)
        is_exact = element_type_of(op.results[0].type) == f32 and c_float(number).value == number
        return number if is_exact else None

    return rule


def _of_zero(op: Operation, number: Number) -> Number | None:
    """A conversion: every type has 0, and not every float -0.0."""
    if number != 0 or copysign(1, number) < 0:
        return None
    return 0.0 if is_float(op.results[0].type) else 0


_CONVERSIONS = (
    *(arith.ExtFOp, arith.TruncFOp, FpToFpOp),
    *(casts.SIToFPOp, casts.UIToFPOp, casts.FPToSIOp, casts.FPToUIOp, casts.ExtSIOp, casts.ExtUIOp, casts.TruncIOp),
)
_RULES = {
    arith.AddiOp: _of_integers(operator.add),
    arith.SubiOp: _of_integers(operator.sub),
    arith.MuliOp: _of_integers(operator.mul),
    arith.AndIOp: _of_integers(operator.and_),
    arith.OrIOp: _of_integers(operator.or_),
    arith.XOrIOp: _of_integers(operator.xor),
    arith.AddfOp: _of_floats(operator.add),
    arith.SubfOp: _of_floats(operator.sub),
    arith.MulfOp: _of_floats(operator.mul),
    **dict.fromkeys(_CONVERSIONS, _of_zero),
}
