"""Whether a load may come before a store of its own iteration, of one of those before, or of any other.

    for i in range(0, n, 1024):
        x = tl.load(p + i + arange(0, 1024))          reads from p + i + 1024 on in the next iteration ...
        tl.store(p + i + arange(0, 1024), 2 * x)      ... and this one stores up to p + i + 1023: apart

    for t in range(n):
        x = tl.load(p + (t - 1) * stride)             reads p + t * stride in the next iteration ...
        tl.store(q + t * stride, x + 1)               ... which this one stores, if p and q are one array: may meet

Addresses are polynomials (tile_address.py). Through one argument, by how much the load is ahead has to be a
constant, and more than the tiles reach in memory: strides that are only known at run time prove nothing. Through
different arguments that is what holds where both are one array.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from deuteron.analysis.points_to import is_argument
from deuteron.analysis.polynomial import Atom, Polynomial, sum_of
from deuteron.analysis.tile_address import TileAddress
from deuteron.analysis.tile_polynomials import TilePolynomials, changes_in
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import is_pointer

Access = LoadOp | StoreOp


def meets_next(
    writer: Operation, load: LoadOp, loop: scf.ForOp, known: TilePolynomials, iterations: int = 1
) -> bool | None:
    """Whether a load reads so many iterations later (0: in the same one) what a store writes in this one, if all
    arguments are one array; None: not known.
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
    step, touched, written = constant_value(loop.step), *(TileAddress.of(known, op.ptr) for op in (access, store))
    if not step or touched is None or written is None or touched.element != written.element:
        return None
    index = known.atom(loop.body.block.args[0])
    advance = _advance(touched.begin, index, step * iterations)
    if advance is None or _varies(touched.begin, index, loop):
        return None
    return touched.begin - written.begin, advance, written.low - touched.high, written.high - touched.low


def _advance(polynomial: Polynomial, index: Atom, step: int) -> Polynomial | None:
    """By how much it grows where the index grows by a step, where that is the same everywhere."""
    with_index, _ = polynomial.split(lambda monomial: index in monomial)
    if any(monomial.count(index) > 1 for monomial, _ in with_index):
        return None
    return sum_of(Polynomial({tuple(a for a in m if a != index): factor * step}) for m, factor in with_index)


def _varies(polynomial: Polynomial, index: Atom, loop: scf.ForOp) -> bool:
    """Whether it depends on what is computed in the loop, besides the index."""
    factors = polynomial.split(lambda monomial: index in monomial)
    others = sum_of(Polynomial({tuple(a for a in m if a != index): factor}) for part in factors for m, factor in part)
    return changes_in(others, loop)
