"""About how many instructions of a GPU's thread an op takes for an element of its tiles.

arith.addf 1      tt.load 3, with address and mask      math.cos 40      of f64 twice that      tt.splat none
"""

from __future__ import annotations

import re

from xdsl.ir import Operation

from deuteron.ir.tt.extern import ExternElementwiseOp
from deuteron.ir.types import bit_width_of, i32

_WEIGHTS = {
    "tt.splat": 0,
    "tt.broadcast": 0,
    "tt.expand_dims": 0,
    "tt.reshape": 0,
    "tt.trans": 0,
    "tt.join": 0,
    "tt.split": 0,
    "tt.make_range": 0,
    "arith.constant": 0,
    "tt.load": 3,
    "tt.store": 3,
    "ttg.convert_layout": 2,
    "tt.gather": 4,
    "ttg.sliced_dot": 3,  # what its loop begins with, and two multiply-adds or more for each sum
    "math.sin": 40,  # half of them for large angles, beside the way
    "math.cos": 40,
    "arith.divf": 8,
    **dict.fromkeys(("arith.divsi", "arith.remsi", "arith.divui", "arith.remui"), 20),
}
_OF_FUNCTION = 8  # of math: exp, log, sqrt: between 3 and 20
_OF_EXTERN = 60  # sin, erf, atan2, tan, lgamma: between 20 and 100; of f64 twice that
_OF_LONG_EXTERN = 200  # pow of f64 has 300, what is computed in double: lgamma 270, erfinv 150
_LONG_EXTERNS = re.compile(r"__nv_([jy][01n]f?|cyl_bessel_i[01]|[lt]gamma|erfc?inv|normcdfinv|pow)")
_SHORT_EXTERNS = re.compile(  # between 1 and 20: instructions, and what the special function unit does of floats
    r"__nv_(fast_\w+|(abs|ceil|copysign|fabs|fdim|floor|fma|fmax|fmin|nearbyint|rint|round|trunc)f?"
    r"|(isnan|isinf|signbit)[fd]|(exp|exp2|exp10|rsqrt|sqrt|tanh|finite|saturate)f)"
)


def weight_of(op: Operation) -> int:
    """Of one element; a scan and a dot are others' to count."""
    if isinstance(op, ExternElementwiseOp):
        return _words(op) * _weight_of_extern(op.symbol.data)
    if op.name.startswith("math."):
        return _words(op) * _WEIGHTS.get(op.name, _OF_FUNCTION)
    return _WEIGHTS.get(op.name, 1)


def _weight_of_extern(symbol: str) -> int:
    if _LONG_EXTERNS.fullmatch(symbol):
        return _OF_LONG_EXTERN
    return _OF_FUNCTION if _SHORT_EXTERNS.fullmatch(symbol) else _OF_EXTERN


def _words(op: Operation) -> int:
    return max(bit_width_of(op.results[0].type) // bit_width_of(i32), 1)
