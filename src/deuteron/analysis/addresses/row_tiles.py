"""Tiles of rows whose columns a mask keeps within the rows, so that each element has an address of its own.

    p + r * n + c   masked by c < n, where c is not negative     RowTile(p, n, r, c), where r * n does not wrap
    p + r * n + c   without that mask                            None: c may reach into row r + 1

Loops over the columns of a tile store such: iterations touch other columns of the same rows. Rows and columns are
polynomials (tile_polynomials.py), each of coordinates of its own, by which no two of them are equal. An n with which
r * n wraps around 32 bits may bring rows together: a launch sees to it (apart.py), so that n is an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial
from deuteron.analysis.addresses.steps import WRAPPED, Step, Steps
from deuteron.analysis.addresses.strided_tile import positive
from deuteron.analysis.addresses.tile_address import is_uniform
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.points_to import is_argument
from deuteron.analysis.axis.natural import is_natural
from deuteron.ir.types import shape_of
from deuteron.layout.steps import are_injective


@dataclass(frozen=True)
class RowTile:
    """The element of a row and a column is at base + width * row + column, where 0 <= column < width. `steps`: no two
    elements are at one place if that is so of these, and whatever they are where there are none.
    """

    base: Polynomial
    width: Polynomial
    rows: Polynomial
    columns: Polynomial
    steps: Steps


def row_tile(known: TilePolynomials, pointer: SSAValue, mask: SSAValue | None) -> RowTile | None:
    """None where a tile is no such, or where that is not known."""
    address = known.of(pointer)
    if address is None or mask is None or known.wraps_in(pointer) or known.wraps_in(mask):
        return None
    for width, columns in _within(positive(known, mask) or ()):
        with_width, base = (address - columns).split(lambda monomial, width=width: width in monomial)
        rows = with_width.over(Polynomial.of(width))
        if width in rows.atoms or _coordinates(base).num_terms:
            continue
        steps = _least_width(shape_of(pointer.type), width, rows)
        if steps is not None and _cover(shape_of(pointer.type), rows, columns):
            return RowTile(base, Polynomial.of(width), rows, columns, steps)
    return None


def _least_width(shape: tuple[int, ...], width: Atom, rows: Polynomial) -> Steps | None:
    """What has to hold for no row to come around to another one; None where that is not up to an argument."""
    furthest = sum((shape[atom.axis] - 1) * abs(factor) for (atom, *_), factor in _coordinates(rows))
    if not furthest:
        return ()
    is_given = is_argument(width.value)
    return (Step(-1 - furthest, -1, 1, width.value.index), WRAPPED) if is_given else None


def _within(conditions: list[Polynomial]) -> Iterator[tuple[Atom, Polynomial]]:
    """Scalars, and what is not negative and less than these where the conditions hold."""
    for condition in conditions:
        for monomial, factor in condition:
            if factor == 1 and len(monomial) == 1 and is_uniform(monomial):
                columns = Polynomial.of(*monomial) - condition
                if monomial[0] not in columns.atoms and _is_natural(columns):
                    yield monomial[0], columns


def _is_natural(columns: Polynomial) -> bool:
    begin, of_coordinates = columns.split(is_uniform)
    return is_natural(begin) and all(factor > 0 for _, factor in of_coordinates)


def _coordinates(polynomial: Polynomial) -> Polynomial:
    return polynomial.split(is_uniform)[1]


def _cover(shape: tuple[int, ...], rows: Polynomial, columns: Polynomial) -> bool:
    """Whether two elements of a tile are in different rows or columns."""
    steps = [list(_coordinates(polynomial)) for polynomial in (rows, columns)]
    axes = [monomial[0].axis for part in steps for monomial, _ in part]
    is_plain = all(len(monomial) == 1 for part in steps for monomial, _ in part) and len(set(axes)) == len(axes)
    if not is_plain or not {axis for axis, extent in enumerate(shape) if extent > 1} <= set(axes):
        return False
    return all(are_injective([(shape[monomial[0].axis], factor) for monomial, factor in part]) for part in steps)
