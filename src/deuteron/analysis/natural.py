"""Which integers are certainly not negative.

    pid * 128                              yes: program ids are not, and nothing is subtracted
    min(pid * 128, n) // 64                where n is one of the arguments that are known not to be
    k in range(n // 64 * 64, n, 64)        whatever n is: if it is negative, there is no such k
    k - 64                                 not known

Integers of 32 bits and more are taken not to overflow, as in `tile_polynomials`.
"""

from __future__ import annotations

from collections.abc import Set

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, SSAValue

from deuteron.analysis.polynomial import Polynomial
from deuteron.ir.arith import constant_value
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp
from deuteron.ir.ttg.convert import ConvertLayoutOp
from deuteron.ir.ttng.cluster import ClusterCTARankOp
from deuteron.ir.types import bit_width_of, element_type_of, i32, is_tile

# Where all operands are.
_OF_NATURALS = (GetProgramIdOp, GetNumProgramsOp, ClusterCTARankOp, arith.AddiOp, arith.MuliOp, arith.MinSIOp, ExtSIOp)
_TILES_OF_NATURALS = (
    *(arith.AddiOp, arith.MuliOp, arith.MinSIOp, ExtSIOp),
    *(SplatOp, BroadcastOp, ExpandDimsOp, TransOp, ReshapeOp, ConvertLayoutOp),
)


def is_natural(polynomial: Polynomial, naturals: Set[SSAValue] = frozenset()) -> bool:
    """Whether it is certainly not negative, if these values are not."""
    return all(factor > 0 and all(_is_natural(atom.value, naturals) for atom in atoms) for atoms, factor in polynomial)


def is_natural_tile(value: SSAValue) -> bool:
    """Whether no element of a tile, or a scalar, of 32 bits or more is negative."""
    return bit_width_of(element_type_of(value.type)) >= bit_width_of(i32) and _is_natural_tile(value, set())


def _is_natural_tile(value: SSAValue, seen: set[SSAValue]) -> bool:
    """What a loop carries is not negative if it begins so, and stays so if it was."""
    if value in seen:
        return True
    seen.add(value)
    if not is_tile(value.type):
        return _is_natural(value, frozenset())
    number = constant_value(value)
    if number is not None:
        return number >= 0
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp):
            return False
        carried = loop.iter_args[value.index - 1], loop.body.block.last_op.operands[value.index - 1]
        return all(_is_natural_tile(source, seen) for source in carried)
    op = value.owner
    if isinstance(op, MakeRangeOp):
        return op.start.value.data >= 0
    if isinstance(op, arith.RemSIOp | arith.DivSIOp):
        return all(_is_natural_tile(operand, seen) for operand in op.operands)
    return isinstance(op, _TILES_OF_NATURALS) and all(_is_natural_tile(operand, seen) for operand in op.operands)


def _is_natural(value: SSAValue | None, naturals: Set[SSAValue]) -> bool:
    if value is None or value in naturals:  # no value: the coordinate of a tile
        return True
    number = constant_value(value)
    if number is not None:
        return number >= 0
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        counts = isinstance(loop, scf.ForOp) and value.index == 0 and (constant_value(loop.step) or 0) > 0
        return counts and (_is_natural(loop.lb, naturals) or _is_empty_below_zero(loop, naturals))
    op = value.owner
    if isinstance(op, arith.RemSIOp | arith.DivSIOp):
        return _is_natural(op.lhs, naturals)
    if isinstance(op, arith.MaxSIOp):
        return any(_is_natural(operand, naturals) for operand in op.operands)
    return isinstance(op, _OF_NATURALS) and all(_is_natural(operand, naturals) for operand in op.operands)


def _is_empty_below_zero(loop: scf.ForOp, naturals: Set[SSAValue]) -> bool:
    """Whether a loop that began with a negative number would have no iteration: what makes the minimum that it
    begins with negative, rounded towards zero or not, is not below its end.
    """
    unknown = [value for value in _minimum_of(_unrounded(loop.lb)) if not _is_natural(value, naturals)]
    return set(unknown) <= set(_minimum_of(loop.ub))


def _unrounded(value: SSAValue) -> SSAValue:
    """The x of x // c * c, which is not below x where that is negative."""
    op = value.owner
    if not isinstance(op, arith.MuliOp):
        return value
    quotient, factor = op.lhs.owner, constant_value(op.rhs)
    is_rounded = isinstance(quotient, arith.DivSIOp) and factor is not None and factor > 0
    return quotient.lhs if is_rounded and constant_value(quotient.rhs) == factor else value


def _minimum_of(value: SSAValue) -> list[SSAValue]:
    """The values of which it is the least."""
    if isinstance(value.owner, arith.MinSIOp):
        return [inner for operand in value.owner.operands for inner in _minimum_of(operand)]
    return [value]
