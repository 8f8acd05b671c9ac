"""Whether a load may come before a store of the iteration before its own, to the same argument.

    for i in range(0, n, 1024):
        x = tl.load(p + i + arange(0, 1024))          reads from p + i + 1024 on in the next iteration ...
        tl.store(p + i + arange(0, 1024), 2 * x)      ... and this one stores up to p + i + 1023: apart

Addresses are polynomials (tile_polynomials.py). By how much the load is ahead has to be a constant, and more than the
tiles reach in memory: strides that are only known at run time prove nothing.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from deuteron.analysis.polynomial import Atom, Polynomial
from deuteron.analysis.tile_polynomials import TilePolynomials, changes_in
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import is_tile, pointee_of, shape_of


def is_apart_from_next(store: StoreOp, load: LoadOp, loop: scf.ForOp, known: TilePolynomials) -> bool:
    """Whether nothing that the load reads in the next iteration is what the store writes in this one."""
    step, read, written = constant_value(loop.step), known.of(load.ptr), known.of(store.ptr)
    if not step or read is None or written is None or pointee_of(load.ptr.type) != pointee_of(store.ptr.type):
        return False
    index = known.atom(loop.body.block.args[0])
    advance = _advance(read, index, step)
    bases = [polynomial.split(_is_uniform)[0] for polynomial in (read, written)]
    reaches = _reach(load.ptr, read), _reach(store.ptr, written)
    if advance is None or None in reaches or _varies(read, index, loop):
        return False
    ahead = (bases[0] + Polynomial.constant(advance) - bases[1]).number
    (read_low, read_high), (written_low, written_high) = reaches
    return ahead is not None and not written_low - read_high <= ahead <= written_high - read_low


def _is_uniform(monomial: tuple[Atom, ...]) -> bool:
    return all(atom.axis is None for atom in monomial)


def _advance(polynomial: Polynomial, index: Atom, step: int) -> int | None:
    """By how much it grows with the index, where that is a constant."""
    with_index, _ = polynomial.split(lambda monomial: index in monomial)
    factors = dict(with_index)
    return factors.get((index,), 0) * step if factors.keys() <= {(index,)} else None


def _varies(polynomial: Polynomial, index: Atom, loop: scf.ForOp) -> bool:
    """Whether it depends on what is computed in the loop, besides the index."""
    return changes_in(polynomial.split(lambda monomial: index not in monomial)[0], loop)


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
