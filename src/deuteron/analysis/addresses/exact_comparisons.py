"""What has to be so that a comparison of integers of 32 bits is one of what they are made of, and nothing overflows.

    keys <= rows + n                 rows + n, where it is largest in a tile, is at most 2**31 - 1

Polynomials are numbers without an end; what a kernel compares has 32 bits. Where a comparison of the polynomials holds,
of the greater side nothing is larger than its largest element, and nothing smaller of the less side than its smallest:
if these two fit, both sides are what they are taken for. Of the loop that they are in the bounds have to fit as well,
and of loops whose iterations are counted in them, whose end is not to be before the begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import gcd, prod

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial
from deuteron.analysis.addresses.strided_tile import ONE
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.axis.ranges import Most, relies_on
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.tt.function import FuncOp, function_of
from deuteron.ir.types import bit_width_of, is_tile, shape_of

LEAST, MOST = -(2**31), 2**31 - 1


def needed(known: TilePolynomials, op: CmpIOp, loop: scf.ForOp) -> list[Polynomial] | None:
    """What may not be negative for that, in any iteration of a loop; None where no polynomial says it.

    What a launch makes sure of (`ranges`) is not among it.
    """
    less, greater = (op.lhs, op.rhs) if op.predicate_name[1:] in ("lt", "le") else (op.rhs, op.lhs)
    extents = shape_of(op.result.type) if is_tile(op.result.type) else ()
    sides = [(-known.of(greater), Polynomial.constant(MOST))]
    if op.predicate_name.startswith("s"):  # an unsigned one is compared with 0 as well
        sides.append((known.of(less), Polynomial.constant(-LEAST)))
    choices = []  # one of each is to be natural
    for side, room in sides:
        least = least_in_tile(side, extents)
        choices.append([] if least is None else _least_in_loop(known, least + room, loop))
    if not all(choices):
        return None
    ends = loop.lb, loop.ub
    exact = [one for value in (*op.operands, *ends) for one in _exact_counts(known, value)] + _rooms(known, ends)
    choices += [[one] for one in exact]
    return [bounds[-1] for bounds in choices if not _is_made_sure_of(bounds, function_of(op))]


def _is_made_sure_of(bounds: Sequence[Polynomial], func: FuncOp) -> bool:
    """Whether a launch makes sure that one of these is not negative."""
    return any(relies_on(partial(_is_natural, bound), func) for bound in bounds)


def _exact_counts(known: TilePolynomials, value: SSAValue) -> list[Polynomial]:
    """What may not be negative, so that loops before a value have as many iterations as its polynomial says."""
    found = []
    for loop in known.loops_counted_in(value):
        found += [*_rooms(known, (loop.lb, loop.ub)), known.range_of(loop)]
    return found


def _rooms(known: TilePolynomials, values: Sequence[SSAValue]) -> list[Polynomial]:
    """How far the polynomials of scalars are from the ends of 32 bits; of what is not computed nothing is asked."""
    computed = [known.of(value) for value in values if known.of(value) != _itself(known, value)]
    return [room for one in computed for room in _rooms_of(one)]


def _rooms_of(polynomial: Polynomial) -> tuple[Polynomial, Polynomial]:
    return Polynomial.constant(MOST) - polynomial, polynomial - Polynomial.constant(LEAST)


def fits_in_32_bits(polynomial: Polynomial, func: FuncOp) -> bool:
    """Whether a launch makes sure of it."""
    return all(_is_made_sure_of([room], func) for room in _rooms_of(polynomial))


def least_in_tile(polynomial: Polynomial, extents: Sequence[int]) -> Polynomial | None:
    """Its least value in a tile; None where coordinates are multiplied by more than numbers."""
    least = Polynomial({})
    for atoms, factor in polynomial:
        axes = [atom.axis for atom in atoms if atom.axis is not None]
        if axes and len(atoms) > 1:
            return None
        if not axes:
            least += Polynomial({atoms: factor})
        elif factor < 0:
            least += Polynomial.constant(factor * (extents[axes[0]] - 1))
    return least


def fits_in_64_bits(polynomial: Polynomial) -> bool:
    """Whether its sum and all terms do, whatever its atoms of 32 bits are."""
    return sum(abs(factor) * (-LEAST) ** len(atoms) for atoms, factor in polynomial) < MOST**2


def _least_in_loop(known: TilePolynomials, polynomial: Polynomial, loop: scf.ForOp) -> list[Polynomial]:
    """What it is no less than, with the first or the last index of a loop in the place of the index."""
    index = known.atom(loop.body.block.args[0])
    of_index, rest = polynomial.split(lambda monomial: index in monomial)
    factor = dict(of_index).get((index,), 0)
    if of_index.num_terms > 1 or (of_index.num_terms and not factor):
        return []
    ends = [_itself(known, loop.lb)] if factor >= 0 else [_last(known, loop), _itself(known, loop.ub) - ONE]
    return [rest + Polynomial.constant(factor) * end for end in ends]


def _last(known: TilePolynomials, loop: scf.ForOp) -> Polynomial:
    """The largest number that an index can be: all are multiples of a power of two that the first one and steps are."""
    unit = gcd(known.of(loop.lb).content, constant_value(loop.step), 1 << 31)
    return Polynomial.constant(MOST // unit * unit)


def _itself(known: TilePolynomials, value: SSAValue) -> Polynomial:
    """A scalar as it is, overflown or not."""
    number = constant_value(value)
    return Polynomial.of(known.atom(value)) if number is None else Polynomial.constant(int(number))


def _is_natural(polynomial: Polynomial, most: Most) -> bool:
    """Whether it is not negative, whatever its atoms are."""
    least = 0
    for atoms, factor in polynomial:
        bounds = [_bounds(atom, most) for atom in atoms]
        if len(atoms) > 1 and any(low < 0 for low, _ in bounds):
            return False
        least += factor * prod(low if factor > 0 else high for low, high in bounds)
    return least >= 0


def _bounds(atom: Atom, most: Most) -> tuple[int, int]:
    largest, bits = most(atom.value), bit_width_of(atom.value.type)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if largest is None else (0, largest)
