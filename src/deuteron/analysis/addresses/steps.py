"""By how much addresses grow along the dimensions of a tile, and whether no two of its elements have one address.

    p + i0 * 64 + i1                of 16 x 64 elements: ()
    p + i0 * 63 + i1                None: rows overlap
    p + i0 * stride + i1            (Step(16, 0, 1, stride), Step(64, 1, 1, None), WRAPPED): if |stride| > 63
    p + i0 * (1 << 30)              None: offsets of 32 bits wrap around, so that row 4 is row 0
    p + i0 * i1, p + i0 % 8         None

Addresses are polynomials (tile_polynomials.py). On what depends on numbers that a kernel is given it relies (apart.py).
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import SSAValue

from deuteron.analysis.addresses.polynomial import Monomial
from deuteron.analysis.addresses.tile_address import is_uniform
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials
from deuteron.analysis.aliasing.points_to import is_argument
from deuteron.ir.types import bit_width_of, i32, shape_of
from deuteron.layout.steps import WRAP, are_injective


class Step(NamedTuple):
    """By how much the address grows along a dimension of a tile: `factor`, or that times an argument of the function,
    by its number.
    """

    extent: int
    axis: int
    factor: int
    argument: int | None


Steps = tuple[Step, ...]
# Where a stride that no number of the kernel says may be so large that offsets wrap around.
WRAPPED = Step(WRAP[0], -1, WRAP[1], None)


def injective_where(known: TilePolynomials, pointer: SSAValue) -> Steps | None:
    """From one element to the next along the dimensions of a tile, if no two elements have one address where these are
    large enough (`are_injective`); () where they are; None where that is not known, or wrong.
    """
    polynomial = known.of(pointer)
    if polynomial is None or known.wraps_in(pointer):
        return None
    _, of_coordinates = polynomial.split(is_uniform)
    shape = shape_of(pointer.type)
    found = [_step(monomial, factor, shape) for monomial, factor in of_coordinates]
    axes = {step.axis for step in found if step is not None}
    wanted = {axis for axis, extent in enumerate(shape) if extent > 1}
    if None in found or len(axes) < len(found) or not wanted <= axes:
        return None
    steps = sorted(step for step in found if step.extent > 1)
    if not are_injective([*((step.extent, step.factor) for step in steps if step.argument is None), WRAP]):
        return None
    if all(step.argument is None for step in steps):
        return ()
    given = [atom.value for atom in of_coordinates.atoms if atom.value is not None]
    is_wide = all(bit_width_of(value.type) > bit_width_of(i32) for value in given)
    return tuple(steps) if is_wide else (*steps, WRAPPED)


def _step(monomial: Monomial, factor: int, shape: tuple[int, ...]) -> Step | None:
    """What a term adds along one dimension; None where it is more than a number times an argument."""
    (axes, others) = ([atom for atom in monomial if (atom.axis is not None) == is_axis] for is_axis in (True, False))
    if len(axes) != 1 or len(others) > 1 or not all(is_argument(atom.value) for atom in others):
        return None
    argument = others[0].value.index if others else None
    return Step(shape[axes[0].axis], axes[0].axis, factor, argument)
