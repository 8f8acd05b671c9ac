"""Whether two tiles of addresses, maybe of different iterations of loops, may have an address in common.

    p + k + arange(0, 1024)      in a loop of k in steps of 1024, in any two iterations      SAME: equal, or apart
    p + k + arange(0, 1024)      and p + k + 1024 + arange(0, 1024), in one iteration        APART
    p + n + arange(0, 1024)      and p + arange(0, 1024)                                     MAY

Addresses are polynomials (tile_address.py). The index of a loop is where it begins plus a multiple of its step, of
which nothing is known where the loop is over, or goes on; of the kernel's scalars nothing is known but that they are
integers. So two addresses are a number apart plus multiples of some others. Different arguments are taken not to
overlap by whoever asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from math import gcd

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.polynomial import Atom, Polynomial
from deuteron.analysis.tile_address import TileAddress, is_uniform
from deuteron.analysis.tile_polynomials import TilePolynomials, changes_in
from deuteron.ir.arith import constant_value
from deuteron.ir.types import shape_of


class Overlap(Enum):
    """APART: nothing in common. SAME: nothing, or each element has the address of the other's at its place."""

    APART = auto()
    SAME = auto()
    MAY = auto()


def overlap(known: TilePolynomials, first: SSAValue, second: SSAValue, past: Iterable[Operation]) -> Overlap:
    """`past`: the loops that are in different iterations when it is the one and the other."""
    one, other = (TileAddress.of(known, pointer) for pointer in (first, second))
    if one is None or other is None or one.element != other.element:
        return Overlap.MAY
    distance = _distance(known, one.begin, other.begin, set(past))
    if distance is None:
        return Overlap.MAY
    is_alike = one.of_coordinates == other.of_coordinates
    return _of_distance(*distance, one.low - other.high, one.high - other.low, is_alike)


def is_injective(known: TilePolynomials, pointer: SSAValue, trusts_strides: bool = False) -> bool:
    """Whether no two elements of a tile have one address. `trusts_strides`: those that are only known at run time are
    taken to be as large as what they stride over.
    """
    polynomial = known.of(pointer)
    if polynomial is None or known.wraps_in(pointer):
        return False
    _, of_coordinates = polynomial.split(is_uniform)
    strided, plain = of_coordinates.split(lambda monomial: len(monomial) > 1)
    trusted = {_axis_of(monomial) for monomial, _ in strided}
    if None in trusted or (trusted and not trusts_strides):
        return False
    factors = {monomial[0].axis: abs(factor) for monomial, factor in plain}
    extents = [(axis, extent) for axis, extent in enumerate(shape_of(pointer.type)) if extent > 1]
    axes = [(factors.get(axis, 0), extent) for axis, extent in extents if axis not in trusted]
    covered = 0
    for factor, extent in sorted(axes):
        if factor <= covered:
            return False
        covered += factor * (extent - 1)
    return True


def _of_distance(number: int, period: int, low: int, high: int, is_alike: bool) -> Overlap:
    """Of tiles that are `number` apart plus any multiple of `period`, and overlap from `low` to `high`."""
    if period == 0:
        is_apart, is_same = not low <= number <= high, number == 0
    else:
        rest = number % period
        is_apart, is_same = rest > high and rest - period < low, rest == 0 and period > max(high, -low)
    if is_apart:
        return Overlap.APART
    return Overlap.SAME if is_same and is_alike else Overlap.MAY


def _axis_of(monomial: tuple[Atom, ...]) -> int | None:
    """The axis along which a term grows; None where it is a product of coordinates."""
    axes = [atom.axis for atom in monomial if atom.axis is not None]
    return axes[0] if len(axes) == 1 else None


def _distance(
    known: TilePolynomials, first: Polynomial, second: Polynomial, past: set[Operation]
) -> tuple[int, int] | None:
    """The number, and of what there may be multiples besides."""
    found = [_without_indices(known, polynomial, past) for polynomial in (first, second)]
    if None in found or any(changes_in(begin, loop) for begin, _ in found for loop in past):
        return None
    (first_begin, first_period), (second_begin, second_period) = found
    rest = _without_indices(known, second_begin - first_begin, None)
    if rest is None:
        return None
    number, unknown = rest[0].split(lambda monomial: not monomial)
    return number.number, gcd(first_period, second_period, rest[1], *(factor for _, factor in unknown))


def _without_indices(
    known: TilePolynomials, polynomial: Polynomial, loops: set[Operation] | None
) -> tuple[Polynomial, int] | None:
    """A polynomial at the beginnings of these loops, or of all, and of what multiples are added later."""
    period = 0
    while (index := _index_in(polynomial, loops)) is not None:
        loop = _loop_of(index)
        begin, step = known.of(loop.lb), constant_value(loop.step)
        with_index, rest = polynomial.split(lambda monomial: index in monomial)
        factor = with_index.over(Polynomial.of(index))
        if begin is None or not step or factor.number is None:
            return None
        polynomial = rest + factor * begin
        period = gcd(period, factor.number * step)
    return polynomial, period


def _index_in(polynomial: Polynomial, loops: set[Operation] | None) -> Atom | None:
    """An atom that is the index of one of these loops; None: of any."""
    indices = ((atom, _loop_of(atom)) for atom in sorted(polynomial.atoms))
    return next((atom for atom, loop in indices if loop is not None and (loops is None or loop in loops)), None)


def _loop_of(atom: Atom) -> scf.ForOp | None:
    """The loop whose index an atom is."""
    value = atom.value
    is_index = isinstance(value, BlockArgument) and value.index == 0
    loop = value.block.parent_op() if is_index else None
    return loop if isinstance(loop, scf.ForOp) else None
