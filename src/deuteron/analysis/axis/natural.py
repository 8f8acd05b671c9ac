"""Which integers of addresses are certainly not negative.

    pid * 128                              yes: program ids are not, and nothing is subtracted
    min(pid * 128, n) // 64                where n is one of the arguments that are known not to be
    k in range(n // 64 * 64, n, 64)        whatever n is: if it is negative, there is no such k
    k - 64                                 not known

What divides has to be certainly not negative too, but for who `trusts` kernels to divide by numbers of tiles: passes
for GPUs do, and `ranges`.
Integers of 32 bits and more are taken not to overflow, as in `tile_polynomials`, but for products with numbers so large
that a launch of few programs is enough for it: no offset is such a product. What may be no address is in `ranges`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.memo import evaluate
from deuteron.ir.arith import constant_value
from deuteron.ir.casts import ExtSIOp
from deuteron.ir.tt.program import GetNumProgramsOp, GetProgramIdOp
from deuteron.ir.ttng.cluster import ClusterCTARankOp

# Where all operands are.
_OF_NATURALS = (GetProgramIdOp, GetNumProgramsOp, ClusterCTARankOp, arith.AddiOp, arith.MuliOp, arith.MinSIOp, ExtSIOp)

# Of what is multiplied in 32 bits: with 2048 programs a step of 4 MB from one to the next is all that these hold.
MOST_FACTOR = 1 << 20
# Of what is added to indices and sizes in 32 bits: no tile or array is as near to the end of these. Another fact than
# that about products, which overflow sooner, though of the same size.
MOST_ADDED = 1 << 20


def is_natural(polynomial: Polynomial, naturals: Set[SSAValue] = frozenset(), trusts: bool = False) -> bool:
    """Whether it is certainly not negative, if these values are not, nor, where it `trusts`, what divides."""
    scalars = _Scalars(naturals, trusts)
    return all(factor > 0 and all(scalars.is_natural(atom.value) for atom in atoms) for atoms, factor in polynomial)


def has_small_factors(polynomial: Polynomial) -> bool:
    """Whether it has no product that soon overflows, as that of which a mask is made may be."""
    return all(abs(factor) <= MOST_FACTOR for atoms, factor in polynomial if atoms)


def _is_large(op: Operation) -> bool:
    """Whether it is a product that soon overflows."""
    return isinstance(op, arith.MuliOp) and any((constant_value(one) or 0) > MOST_FACTOR for one in op.operands)


class _Scalars:
    """Which scalars are certainly not negative."""

    def __init__(self, naturals: Set[SSAValue] = frozenset(), trusts: bool = False):
        self._naturals, self._trusts = naturals, trusts
        self._known: dict[SSAValue, bool] = {}

    def is_natural(self, value: SSAValue | None) -> bool:
        """No value is the coordinate of a tile."""
        return value is None or evaluate(value, self._known, _asked_of, self._find)

    def _find(self, value: SSAValue) -> bool:
        if value in self._naturals:
            return True
        number = constant_value(value)
        if number is not None:
            return number >= 0
        if isinstance(value, BlockArgument):
            loop = counting_loop(value)
            return loop is not None and (self._known[loop.lb] or is_empty_below_zero(loop, self._known.__getitem__))
        op = value.owner
        if isinstance(op, arith.RemSIOp):
            return self._known[op.lhs]
        if isinstance(op, arith.DivSIOp):
            return self._known[op.lhs] and (self._trusts or self._known[op.rhs])
        if isinstance(op, arith.MaxSIOp):
            return any(self._known[operand] for operand in op.operands)
        if not isinstance(op, _OF_NATURALS) or _is_large(op):
            return False
        return all(self._known[operand] for operand in op.operands)


def _asked_of(value: SSAValue) -> Sequence[SSAValue]:
    """The scalars of which has to be known whether they are negative, to know it of one."""
    if isinstance(value, BlockArgument):
        loop = counting_loop(value)
        return () if loop is None else (loop.lb, *minimum_of(unrounded(loop.lb)))
    op = value.owner
    if isinstance(op, arith.RemSIOp):
        return (op.lhs,)
    return op.operands if isinstance(op, (*_OF_NATURALS, arith.DivSIOp, arith.MaxSIOp)) else ()


def counting_loop(argument: BlockArgument) -> scf.ForOp | None:
    """The loop that counts upwards in it."""
    loop = argument.block.parent_op()
    counts = isinstance(loop, scf.ForOp) and argument.index == 0 and (constant_value(loop.step) or 0) > 0
    return loop if counts else None


def is_empty_below_zero(loop: scf.ForOp, is_natural: Callable[[SSAValue], bool]) -> bool:
    """Whether a loop that began with a negative number would have no iteration: what makes the minimum that it begins
    with negative, rounded towards zero or not, is not below its end.
    """
    unknown = {value for value in minimum_of(unrounded(loop.lb)) if not is_natural(value)}
    return unknown <= set(minimum_of(loop.ub))


def unrounded(value: SSAValue) -> SSAValue:
    """The x of x // c * c, which is not below x where that is negative."""
    op = value.owner
    if not isinstance(op, arith.MuliOp):
        return value
    quotient, factor = op.lhs.owner, constant_value(op.rhs)
    is_rounded = isinstance(quotient, arith.DivSIOp) and factor is not None and factor > 0
    return quotient.lhs if is_rounded and constant_value(quotient.rhs) == factor else value


def minimum_of(value: SSAValue) -> list[SSAValue]:
    """The values of which it is the least."""
    pending, found = [value], dict[SSAValue, None]()
    while pending:
        current = pending.pop()
        if isinstance(current.owner, arith.MinSIOp):
            pending += (operand for operand in current.owner.operands if operand not in found)
        found[current] = None
    return [one for one in found if not isinstance(one.owner, arith.MinSIOp)]
