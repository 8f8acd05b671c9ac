"""Whether the function of a reduction gives the same, to the bit, for both orders of its operands.

    a + b                      yes
    a + b + a * b              yes: each op is the same of what changed places, or commutes
    where(a > b, a, b)         not known: a number and NaN, of which neither is larger, give the second
    where(a > b, i, j)         not known: of equal elements it gives the second one's index

Only the form is looked at, so that what is symmetric for another reason is not known to be.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from deuteron.analysis.memo import evaluate
from deuteron.ir.effects import is_pure

COMMUTATIVE = (
    *(arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
    *(arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp, arith.MaxUIOp),
    *(arith.AddfOp, arith.MulfOp, arith.MinimumfOp, arith.MaximumfOp, arith.MinnumfOp, arith.MaxnumfOp),
)

Pair = tuple[SSAValue, SSAValue]


def is_symmetric(block: Block) -> bool:
    """Whether all results of a function of two groups are what they are with the groups exchanged."""
    known: dict[Pair, bool] = {}

    def mirrors(pair: Pair) -> bool:
        if not _are_alike(*pair):
            return _change_places(*pair, block)
        return any(all(known[one] for one in pairs) for pairs in _ways(*pair))

    def asked(pair: Pair) -> list[Pair]:
        return [one for pairs in _ways(*pair) for one in pairs] if _are_alike(*pair) else []

    return all(evaluate((result, result), known, asked, mirrors) for result in block.last_op.operands)


def _change_places(first: SSAValue, second: SSAValue, block: Block) -> bool:
    """Whether one is an operand of the function, and the other that of the other group, or both are from outside."""
    if first.owner is block and second.owner is block:
        return abs(first.index - second.index) == len(block.args) // 2
    return first is second and first.owner is not block and not _is_in(first, block)


def _is_in(value: SSAValue, block: Block) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent is block


def _are_alike(first: SSAValue, second: SSAValue) -> bool:
    """Whether two values are given by one op, or by two that do the same with their operands."""
    one, other = first.owner, second.owner
    if not isinstance(one, Operation) or not isinstance(other, Operation) or one.parent is not other.parent:
        return False
    is_same = type(one) is type(other) and one.properties == other.properties and first.index == second.index
    return is_same and first.type == second.type and is_pure(one) and not one.regions


def _ways(first: SSAValue, second: SSAValue) -> Iterator[list[Pair]]:
    """The pairs of operands that have to change places for two values to."""
    one, other = first.owner, second.owner
    yield list(zip(one.operands, other.operands, strict=True))
    if isinstance(one, COMMUTATIVE):
        yield list(zip(one.operands, reversed(other.operands), strict=True))
