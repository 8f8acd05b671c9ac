"""Whether what a value holds beyond a bound along one of its axes is stored nowhere.

    rows of a dot's operand -> rows of the dot -> ... what loops carry, elementwise ops, transpositions ...
        -> a store whose mask leaves those rows out

An operand's other axis is summed up over: what it holds there is in every element.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue, Use

from deuteron.analysis.addresses.polynomial import Polynomial, coordinate
from deuteron.analysis.addresses.strided_tile import positive
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials, changes_in
from deuteron.ir.forwarding import forwarded_to
from deuteron.ir.reached import reached
from deuteron.ir.tt.dot import DotOp
from deuteron.ir.tt.memory import StoreOp
from deuteron.ir.tt.shape import TransOp
from deuteron.ir.ttg.inference import is_elementwise

Place = tuple[SSAValue, int]
KEPT_AXIS = {0: 0, 1: 1}  # of each operand of a dot, the axis that the dot has too


def is_guarded(known: TilePolynomials, value: SSAValue, axis: int, bound: Polynomial) -> bool:
    """Whether elements for which `bound` minus their coordinate is not positive are never seen."""

    def places(use: Use, along: int) -> list[Place] | None:
        return None if _outlives(use, bound) else _places(use, along)

    def following(place: Place) -> list[Place]:
        current, along = place
        return [made for use in current.uses for made in places(use, along) or ()]

    return all(
        places(use, along) is not None or _is_stored_within(known, use, along, bound)
        for current, along in reached([(value, axis)], following)
        for use in current.uses
    )


def _outlives(use: Use, bound: Polynomial) -> bool:
    """Whether a value goes into the next iteration of a loop that changes the bound."""
    loop = use.operation.parent_op()
    return isinstance(use.operation, scf.YieldOp) and isinstance(loop, scf.ForOp) and changes_in(bound, loop)


def _places(use: Use, axis: int) -> list[Place] | None:
    """Where the elements go that an op reads; None where that is not known."""
    op = use.operation
    if isinstance(op, DotOp):
        return [(op.result, axis)] if axis == KEPT_AXIS.get(use.index, axis) else None
    if isinstance(op, TransOp):
        return [(op.result, op.result_axis(axis))]
    if is_elementwise(op) and len(op.results) == 1:
        return [(op.results[0], axis)]
    if isinstance(op, scf.ForOp) or isinstance(op.parent_op(), scf.ForOp):
        return [(value, axis) for value in forwarded_to(use)] or None
    return None


def _is_stored_within(known: TilePolynomials, use: Use, axis: int, bound: Polynomial) -> bool:
    op: Operation = use.operation
    if not isinstance(op, StoreOp) or use.operation.operands[use.index] is not op.value or op.mask is None:
        return False
    conditions = positive(known, op.mask) or []
    return bound - Polynomial.of(coordinate(axis)) in conditions and not known.wraps_in(op.mask)
