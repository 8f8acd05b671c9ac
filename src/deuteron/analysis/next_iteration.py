"""Whether a load may come before a store of the iteration before its own, or of several before, or any other.

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

Access = LoadOp | StoreOp


def meets_next(
    writer: Operation, load: LoadOp, loop: scf.ForOp, known: TilePolynomials, iterations: int = 1
) -> bool | None:
    """Whether a load reads so many iterations later what a store writes in this one, if all arguments are one array;
    None: not known.
    """
    found = _beside(writer, load, loop, known, iterations) if isinstance(writer, StoreOp) else None
    if found is None:
        return None
    distance, advance, low, high = found
    ahead = _in_one_array(distance + advance)
    return None if ahead is None else low <= ahead <= high


def meets_others(store: StoreOp, access: Access, loop: scf.ForOp, known: TilePolynomials) -> bool | None:
    """Whether an access touches in any other iteration what a store writes in this one, if all arguments are one array;
    None: not known.
    """
    found = _beside(store, access, loop, known, 1)
    if found is None:
        return None
    distance, advance, low, high = found
    now, step = _in_one_array(distance), advance.number
    if now is None or step is None:
        return None
    return now + abs(step) <= high or now - abs(step) >= low


def _in_one_array(distance: Polynomial) -> int | None:
    """How far two accesses are apart, if all arguments are one array."""
    number, bases = distance.split(lambda monomial: not any(is_pointer(atom.value.type) for atom in monomial))
    is_plain = all(is_argument(atom.value) for monomial, _ in bases for atom in monomial)
    return number.number if is_plain else None


def _beside(
    store: StoreOp, access: Access, loop: scf.ForOp, known: TilePolynomials, iterations: int
) -> tuple[Polynomial, Polynomial, int, int] | None:
    """How far after the store the access begins in one iteration, by how much it moves in so many, and from where to
    where they overlap; None: unknown.
    """
    step, touched, written = constant_value(loop.step), known.of(access.ptr), known.of(store.ptr)
    if not step or touched is None or written is None or pointee_of(access.ptr.type) != pointee_of(store.ptr.type):
        return None
    index = known.atom(loop.body.block.args[0])
    advance = _advance(touched, index, step * iterations)
    reaches = reach(access.ptr, touched), reach(store.ptr, written)
    if advance is None or None in reaches or _varies(touched, index, loop):
        return None
    bases = [polynomial.split(_is_uniform)[0] for polynomial in (touched, written)]
    (low, high), (written_low, written_high) = reaches
    return bases[0] - bases[1], advance, written_low - high, written_high - low


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


def reach(pointer: SSAValue, polynomial: Polynomial) -> tuple[int, int] | None:
    """The least and the most that coordinates add to an address; None where that is no constant."""
    _, of_coordinates = polynomial.split(_is_uniform)
    low = high = 0
    for monomial, factor in of_coordinates:
        if len(monomial) > 1 or not is_tile(pointer.type):
            return None
        furthest = factor * (shape_of(pointer.type)[monomial[0].axis] - 1)
        low, high = low + min(furthest, 0), high + max(furthest, 0)
    return low, high
