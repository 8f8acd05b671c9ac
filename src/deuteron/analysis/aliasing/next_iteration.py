"""Whether a load may come before a store of its own iteration, of one of those before, or of any other.

    for i in range(0, n, 1024):
        x = tl.load(p + i + arange(0, 1024))          reads from p + i + 1024 on in the next iteration ...
        tl.store(p + i + arange(0, 1024), 2 * x)      ... and this one stores up to p + i + 1023: apart

    for t in range(n):
        x = tl.load(p + (t - 1) * stride)             reads p + t * stride in the next iteration ...
        tl.store(q + t * stride, x + 1)               ... which this one stores, if p and q are one array: may meet

Addresses are polynomials (tile_address.py). Through one argument, by how much the load is ahead has to be a
constant, and more than the tiles reach in memory: strides that are only known at run time prove nothing. Through
different arguments that is what holds where both are one array, and strides that are numbers of their own are equal.

    for k in range(n):
        tl.store(p + k * (1 << 30) + i, k)            the fifth iteration stores where the first one did: offsets of 32
                                                      bits wrap around, so that 2**32 elements on is the same place
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Operation

from deuteron.analysis.addresses.polynomial import Polynomial
from deuteron.analysis.addresses.tile_address import TileAddress
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials, changes_in
from deuteron.analysis.aliasing.one_array import as_number, in_one_array
from deuteron.analysis.aliasing.overlap import WRAP
from deuteron.analysis.aliasing.same_offsets import Alike
from deuteron.analysis.axis.ranges import largest_in_any_grid
from deuteron.ir.arith import constant_value
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import bit_width_of

Access = LoadOp | StoreOp


class Meeting(NamedTuple):
    """Whether two accesses meet, if all arguments are one array; None: not known. `equal` are numbers that are given to
    the kernel, of which it is only known if they are equal.
    """

    meets: bool | None
    equal: Alike = frozenset()


UNKNOWN = Meeting(None)


def meets_next(
    writer: Operation, load: LoadOp, loop: scf.ForOp, known: TilePolynomials, iterations: int = 1
) -> Meeting:
    """Whether a load reads so many iterations later (0: in the same one) what a store writes in this one."""
    found = _beside(writer, load, loop, known, iterations) if isinstance(writer, StoreOp) else None
    if found is None:
        return UNKNOWN
    distance, advance, low, high = found
    ahead, equal = _in_one_array(distance + advance)
    return UNKNOWN if ahead is None else _meeting((ahead - low) % WRAP <= high - low, equal)


def loads_back(store: StoreOp, load: LoadOp, loop: scf.ForOp, known: TilePolynomials) -> bool:
    """Whether an iteration loads just what it stores, if all arguments are one array."""
    found = _beside(store, load, loop, known, 0)
    if found is None:
        return False
    distance, _, low, high = found
    return low == -high and _in_one_array(distance)[0] == 0


def meets_others(store: StoreOp, access: Access, loop: scf.ForOp, known: TilePolynomials) -> Meeting:
    """Whether an access touches in any other iteration what a store writes in this one."""
    found = _beside(store, access, loop, known, 1)
    if found is None:
        return UNKNOWN
    distance, advance, low, high = found
    (now, equal), step = _in_one_array(distance), advance.number
    if now is None or step is None or abs(now) + high - low + _furthest(loop, step) >= WRAP:
        return UNKNOWN
    return _meeting(now + abs(step) <= high or now - abs(step) >= low, equal)


def _meeting(meets: bool, equal: Alike) -> Meeting:
    """That they would meet if numbers were equal says nothing of others."""
    return UNKNOWN if meets and equal else Meeting(meets, equal)


def _in_one_array(distance: Polynomial) -> tuple[int | None, Alike]:
    """How far two accesses are apart, if all arguments are one array, and numbers are equal."""
    own = in_one_array(distance)
    return (None, frozenset()) if own is None else as_number(own)


def _beside(
    store: StoreOp, access: Access, loop: scf.ForOp, known: TilePolynomials, iterations: int
) -> tuple[Polynomial, Polynomial, int, int] | None:
    """How far after the store the access begins in one iteration, by how much it moves in so many, and from where to
    where they overlap; None: unknown.
    """
    step, touched, written = constant_value(loop.step), *(TileAddress.of(known, op.ptr) for op in (access, store))
    if not step or touched is None or written is None or touched.element != written.element:
        return None
    grows = growth(known, touched.begin, loop)
    if grows is None:
        return None
    advance = grows * Polynomial.constant(step * iterations)
    return touched.begin - written.begin, advance, written.low - touched.high, written.high - touched.low


def _furthest(loop: scf.ForOp, step: int) -> int:
    """How far all iterations of a loop move what each of them moves by a step, at most; 0 where its index has 64 bits,
    as has what is computed of it then.
    """
    index, first = loop.body.block.args[0], constant_value(loop.lb)
    bits, last = bit_width_of(index.type), largest_in_any_grid(index)
    if 1 << bits > WRAP:
        return 0
    length = (1 << bits) - 1 if last is None else last - max(first or 0, 0)
    return length // abs(constant_value(loop.step)) * abs(step)


def growth(known: TilePolynomials, polynomial: Polynomial, loop: scf.ForOp) -> Polynomial | None:
    """By how much it grows where the index of a loop grows by one; None where that is not the same everywhere."""
    index = known.atom(loop.body.block.args[0])
    with_index, others = polynomial.split(lambda monomial: index in monomial)
    factor = with_index.over(Polynomial.of(index))
    return None if index in factor.atoms or changes_in(factor, loop) or changes_in(others, loop) else factor
