"""Divisions that neighbours have one quotient of, by a number that is known: a vector does them once.

i = tl.arange(0, 256)
i // 96         32 neighbours, beginning at a multiple of 32, have one quotient
i % 96          of so many the remainder counts up by one
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation

from deuteron.analysis.axis.axis_analysis import AxisInfoAnalysis
from deuteron.ir.arith import constant_value

QUOTIENTS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
REMAINDERS = (arith.RemSIOp, arith.RemUIOp)


def neighbours_of_one_quotient(infos: AxisInfoAnalysis, op: Operation, dimension: int) -> int:
    """How many neighbours, beginning at multiples of that, have the same quotient."""
    divisor = constant_value(op.operands[1])
    if divisor is None or divisor <= 0:
        return 1
    info = infos.of(op.results[0])
    return (info.contiguity if isinstance(op, REMAINDERS) else info.constancy)[dimension]
