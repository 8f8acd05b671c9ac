"""Where the elements of a tile are in memory: from where it begins, and what its coordinates add.

    a + 128 * pid + 3 * i0 - i1      of 16 x 8 elements:  TileAddress(a + 128 * pid, 3 * i0 - i1, ((3, 45), (-1, -7)))
    a + i0 * stride                  None: how far it reaches is not known
    a + (i0 + k) % n                 None: it wraps around

Begins are polynomials (tile_polynomials.py), in elements; so are those of scalars, which reach nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import Attribute, SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.ir.types import is_tile, pointee_of, shape_of


@dataclass(frozen=True)
class TileAddress:
    """`spans`: of each coordinate what a step along it adds to where the tile begins, and what its end does."""

    begin: Polynomial
    of_coordinates: Polynomial
    spans: tuple[tuple[int, int], ...]
    element: Attribute

    @property
    def low(self) -> int:
        """The least that coordinates add."""
        return sum(min(last, 0) for _, last in self.spans)

    @property
    def high(self) -> int:
        """The most that coordinates add."""
        return sum(max(last, 0) for _, last in self.spans)

    def within(self, stride: int) -> TileAddress:
        """Of the elements at 0 along all dimensions but those of shorter strides."""
        return replace(self, spans=tuple(span for span in self.spans if abs(span[0]) < stride))

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
        if any(len(monomial) > 1 or not is_tile(type) for monomial, _ in of_coordinates):
            return None
        spans = ((step, step * (shape_of(type)[monomial[0].axis] - 1)) for monomial, step in of_coordinates)
        return TileAddress(begin, of_coordinates, tuple(spans), pointee_of(type))


def is_uniform(monomial: tuple[Atom, ...]) -> bool:
    """Whether it is the same for all elements of a tile."""
    return all(atom.axis is None for atom in monomial)
