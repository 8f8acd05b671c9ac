"""Where the elements of a tile are in memory: from where it begins, and what its coordinates add.

    a + 128 * pid + 3 * i0 - i1      of 16 x 8 elements:  TileAddress(a + 128 * pid, 3 * i0 - i1, -7, 45)
    a + i0 * stride                  None: how far it reaches is not known
    a + (i0 + k) % n                 None: it wraps around

Begins are polynomials (tile_polynomials.py), in elements; so are those of scalars, which reach nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.ir.types import is_tile, pointee_of, shape_of


@dataclass(frozen=True)
class TileAddress:
    """`low` and `high`: the least and the most that coordinates add to where it begins."""

    begin: Polynomial
    of_coordinates: Polynomial
    low: int
    high: int
    element: Attribute

    @staticmethod
    def of(known: TilePolynomials, pointer: SSAValue) -> TileAddress | None:
        """None where it is not known, or wraps around."""
        polynomial = known.of(pointer)
        if polynomial is None or known.wraps_in(pointer):
            return None
        return TileAddress.of_polynomial(pointer.type, polynomial)

    @staticmethod
    def of_polynomial(type: Attribute, polynomial: Polynomial) -> TileAddress | None:
        """Of a pointer of this type to what is so far from anywhere."""
        begin, of_coordinates = polynomial.split(is_uniform)
        low = high = 0
        for monomial, factor in of_coordinates:
            if len(monomial) > 1 or not is_tile(type):
                return None
            furthest = factor * (shape_of(type)[monomial[0].axis] - 1)
            low, high = low + min(furthest, 0), high + max(furthest, 0)
        return TileAddress(begin, of_coordinates, low, high, pointee_of(type))


def is_uniform(monomial: tuple[Atom, ...]) -> bool:
    """Whether it is the same for all elements of a tile."""
    return all(atom.axis is None for atom in monomial)
