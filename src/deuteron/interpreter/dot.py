"""The rule for `tt.dot`: a @ b + c.

Floats are multiplied and summed in float64 and rounded once to the type of c, whatever `inputPrecision` says: operands
are taken exactly, so that tf32 is an approximation of this. Integers wrap.
"""

from __future__ import annotations

import numpy as np

from deuteron.interpreter.rule_table import RuleTable
from deuteron.interpreter.values import round_float
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.types import bit_width_of, is_float

RULES = RuleTable()


@RULES.on(DotOp)
def dot(ctx, op, a, b, c):
    type = op.results[0].type
    if is_float(type):
        total = np.matmul(np.asarray(a, np.float64), np.asarray(b, np.float64)) + np.asarray(c, np.float64)
        return round_float(total, type)
    return c + _integer_product(a, b, bit_width_of(op.operands[0].type)).astype(c.dtype)


def _integer_product(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """Sums of 8-bit products are exact in float64, where NumPy multiplies matrices fast."""
    if bits == 8:
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    return np.matmul(a.astype(np.int64), b.astype(np.int64))
