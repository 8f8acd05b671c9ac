"""Below which power of two the magnitudes of floats are, by the ops that give them.

    %n = arith.sitofp %i : i32 to f32        31
    %s = math.sqrt %v : f32                  64: that of the largest float is below 2**64
    %d = arith.addf %s, %n                   65
    %h = arith.extf %x : f16 to f32          16
    %p = tt.load %q : f32                    not known

Infinities and NaN are not counted: the root of one is one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp, isfinite

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float16Type
from xdsl.ir import Attribute, SSAValue

from deuteron.ir.arith import SelectOp, constant_value
from deuteron.ir.casts import SIToFPOp, UIToFPOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.types import element_type_of, is_fp8

# Ops from a value to what it is made of. A divisor is made of few; a sum of a thousand has not to be looked through.
FARTHEST = 8
OF_FLOAT16, OF_INTEGER, OF_ROOT, OF_INVERSE_ROOT, OF_LOGARITHM, OF_ONE = 16, 64, 64, 75, 8, 1
_KNOWN = {
    **dict.fromkeys((SIToFPOp, UIToFPOp), OF_INTEGER),
    **dict.fromkeys((math.SinOp, math.CosOp, math.TanhOp, math.ErfOp), OF_ONE),
    **dict.fromkeys((math.LogOp, math.Log2Op), OF_LOGARITHM),
    math.SqrtOp: OF_ROOT,
    math.RsqrtOp: OF_INVERSE_ROOT,
}
_Combine = Callable[..., int]
_COMBINED: dict[type, _Combine] = {
    **dict.fromkeys((arith.AddfOp, arith.SubfOp), lambda a, b: max(a, b) + 1),
    arith.MulfOp: lambda a, b: a + b,
    **dict.fromkeys((arith.MinnumfOp, arith.MaxnumfOp, arith.MinimumfOp, arith.MaximumfOp), max),
    SelectOp: max,
    **dict.fromkeys((arith.NegfOp, math.AbsFOp, arith.ExtFOp), lambda a: a),
    **dict.fromkeys((BroadcastOp, ExpandDimsOp, ReshapeOp, SplatOp, TransOp), lambda a: a),
}


def greatest_power(value: SSAValue, farthest: int = FARTHEST) -> int | None:
    """The exponent of a power of two that no finite element of a float, or of a tile of floats, reaches; None if it is
    not known.
    """
    number = constant_value(value)
    if number is not None:
        return frexp(number)[1] if isfinite(number) else None
    if _is_narrow(element_type_of(value.type)):
        return OF_FLOAT16
    op = value.owner
    if type(op) in _KNOWN:
        return _KNOWN[type(op)]
    if type(op) not in _COMBINED or not farthest:
        return None
    made_of = op.operands[1:] if isinstance(op, SelectOp) else op.operands
    powers = [greatest_power(one, farthest - 1) for one in made_of]
    return None if None in powers else _COMBINED[type(op)](*powers)


def _is_narrow(element: Attribute) -> bool:
    return isinstance(element, Float16Type) or is_fp8(element)
