"""Whether a load may come before a store of the iteration before its own, or of several before.

    for i in range(0, n, 1024):
        x = tl.load(p + i + arange(0, 1024))          reads from p + i + 1024 on in the next iteration ...
        tl.store(p + i + arange(0, 1024), 2 * x)      ... and this one stores up to p + i + 1023: apart

    for t in range(n):
        x = tl.load(p + (t - 1) * stride)             reads p + t * stride in the next iteration ...
        tl.store(q + t * stride, x + 1)               ... which this one stores, if p and q are one array: may meet

Addresses are polynomials (tile_polynomials.py). Through one argument, by how much the load is ahead has to be a
constant, and more than the tiles reach in memory: strides that are only known at run time prove nothing. Through
different arguments that is what holds where both are one array.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from deuteron.analysis.points_to import is_argument
from deuteron.analysis.polynomial import Atom, Polynomial, sum_of
from deuteron.analysis.tile_polynomials import TilePolynomials, changes_in
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import is_pointer, is_tile, pointee_of, shape_of


def meets_next(
    writer: Operation, load: LoadOp, loop: scf.ForOp, known: TilePolynomials, iterations: int = 1
) -> bool | None:
    """Whether a load reads so many iterations later what a store writes in this one, if all arguments are one array;
    None: not known.
    """
    found = _ahead(writer, load, loop, known, iterations) if isinstance(writer, StoreOp) else None
    if found is None:
        return None
    ahead, low, high = found
    distance, bases = ahead.split(lambda monomial: not any(is_pointer(atom.value.type) for atom in monomial))
    if distance.number is None or not all(is_argument(atom.value) for monomial, _ in bases for atom in monomial):
        return None
    return low <= distance.number <= high


def _ahead(
    store: StoreOp, load: LoadOp, loop: scf.ForOp, known: TilePolynomials, iterations: int
) -> tuple[Polynomial, int, int] | None:
    """How far after the store the later load begins, and from where to where they overlap; None: unknown."""
    step, read, written = constant_value(loop.step), known.of(load.ptr), known.of(store.ptr)
    if not step or read is None or written is None or pointee_of(load.ptr.type) != pointee_of(store.ptr.type):
        return None
    index = known.atom(loop.body.block.args[0])
    advance, reaches = _advance(read, index, step * iterations), (_reach(load.ptr, read), _reach(store.ptr, written))
    if advance is None or None in reaches or _varies(read, index, loop):
        return None
    bases = [polynomial.split(_is_uniform)[0] for polynomial in (read, written)]
    (read_low, read_high), (written_low, written_high) = reaches
    return bases[0] + advance - bases[1], written_low - read_high, written_high - read_low


def _is_uniform(monomial: tuple[Atom, ...]) -> bool:
    return all(atom.axis is None for atom in monomial)


def _advance(polynomial: Polynomial, index: Atom, step: int) -> Polynomial | None:
    """By how much it grows where the index grows by a step, where that is the same everywhere."""
    with_index, _ = polynomial.split(lambda monomial: index in monomial)
    if any(monomial.count(index) > 1 or not _is_uniform(monomial) for monomial, _ in with_index):
        return None
    return sum_of(Polynomial({tuple(a for a in m if a != index): factor * step}) for m, factor in with_index)


def _varies(polynomial: Polynomial, index: Atom, loop: scf.ForOp) -> bool:
    """Whether it depends on what is computed in the loop, besides the index."""
    factors = polynomial.split(lambda monomial: index in monomial)
    others = sum_of(Polynomial({tuple(a for a in m if a != index): factor}) for part in factors for m, factor in part)
    return changes_in(others, loop)


def _reach(pointer: SSAValue, polynomial: Polynomial) -> tuple[int, int] | None:
    """The least and the most that coordinates add to an address; None where that is no constant."""
    _, of_coordinates = polynomial.split(_is_uniform)
    low = high = 0
    for monomial, factor in of_coordinates:
        if len(monomial) > 1 or not is_tile(pointer.type):
            return None
        furthest = factor * (shape_of(pointer.type)[monomial[0].axis] - 1)
        low, high = low + min(furthest, 0), high + max(furthest, 0)
    return low, high
