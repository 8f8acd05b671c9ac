"""Whether two tiles of addresses, maybe of different iterations of loops, may have an address in common.

    p + k + arange(0, 1024)      in a loop of k in steps of 1024, in any two iterations      SAME: equal, or apart
    p + k + arange(0, 1024)      and p + k + 1024 + arange(0, 1024), in one iteration        APART
    p + 128 * i + j              and p + 128 * i + j + 64, for j of 64                       APART
    p + n + arange(0, 1024)      and p + arange(0, 1024)                                     MAY

Addresses are polynomials (tile_address.py). The index of a loop is where it begins plus a multiple of its step
(stepped.py), of which nothing is known where the loop is over, or goes on; of the kernel's scalars nothing is known but
that they are integers: steps of 1024 * num_programs are multiples of 1024. So two addresses are a number apart plus
multiples of some others; of powers of two, since offsets of 32 bits may wrap around: 96 * n may be 32.

    p + k + arange(0, 1024)      and q + k + arange(0, 1024)                             in_one_array: SAME
    p + r * n + arange(0, 1024)  and q + r * m + arange(0, 1024)                             SAME, if n and m are equal

Through different arguments `in_one_array` says what holds where these are one array, that of both begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from math import gcd

from xdsl.ir import Operation, SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Polynomial
from deuteron.analysis.addresses.row_tiles import RowTile, row_tile
from deuteron.analysis.addresses.stepped import Stepped, stepped_by_loop
from deuteron.analysis.addresses.tile_address import TileAddress
from deuteron.analysis.addresses.tile_polynomials import TilePolynomials, changes_in
from deuteron.analysis.aliasing.apart import Tiles
from deuteron.analysis.aliasing.one_array import as_number, in_one_array
from deuteron.analysis.aliasing.same_offsets import Alike
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.types import byte_width_of, pointee_of

# In elements: offsets that are so far apart are one in 32 bits. Whatever is computed in them is right modulo that.
WRAP = 1 << 32


class Overlap(Enum):
    """APART: nothing in common. SAME: nothing, or each element has the address of the other's at its place."""

    APART = auto()
    SAME = auto()
    MAY = auto()


UNKNOWN = Overlap.MAY, frozenset()
_Solve = Callable[[Polynomial], tuple[Polynomial, Alike] | None]


class Overlaps:
    """Of the addresses of one function, which are computed once. `past`: the loops that are in different iterations
    when it is the one and the other.
    """

    def __init__(self, known: TilePolynomials):
        self._known = known
        self._addresses: dict[SSAValue, TileAddress | None] = {}
        self._row_tiles: dict[Operation, RowTile | None] = {}

    def __call__(self, first: SSAValue, second: SSAValue, past: Iterable[Operation]) -> Overlap:
        return self._of(first, second, past, _in_itself)[0]

    def in_one_array(self, first: SSAValue, second: SSAValue, past: Iterable[Operation]) -> tuple[Overlap, Alike]:
        """What it is if the arguments are one array, and which numbers have to be equal for it."""
        return self._of(first, second, past, _if_equal)

    def in_rows(
        self, first: LoadOp | StoreOp, second: LoadOp | StoreOp, past: Iterable[Operation]
    ) -> tuple[Overlap, Tiles]:
        """Of tiles of the same rows that masks keep within them (row_tiles.py), each element at a place of its own, and
        of which tiles that is relied on.
        """
        one, other = (self._rows(op) for op in (first, second))
        if one is None or other is None or pointee_of(first.ptr.type) != pointee_of(second.ptr.type):
            return UNKNOWN
        if (one.base, one.width, one.rows) != (other.base, other.width, other.rows):
            return UNKNOWN
        if any(changes_in(part, loop) for part in (one.base, one.width, one.rows) for loop in past):
            return UNKNOWN
        columns = [TileAddress.of_polynomial(op.ptr.type, tile.columns) for op, tile in ((first, one), (second, other))]
        found, _ = self._between(*columns, past, _in_itself)
        return found, frozenset({one.steps, other.steps} - {()})

    def _of(self, first: SSAValue, second: SSAValue, past: Iterable[Operation], solve: _Solve) -> tuple[Overlap, Alike]:
        return self._between(*map(self._address, (first, second)), past, solve)

    def _between(
        self, one: TileAddress | None, other: TileAddress | None, past: Iterable[Operation], solve: _Solve
    ) -> tuple[Overlap, Alike]:
        if one is None or other is None or byte_width_of(one.element) != byte_width_of(other.element):
            return UNKNOWN
        distance = _distance(self._known, one.begin, other.begin, set(past), solve)
        if distance is None:
            return UNKNOWN
        number, period, equal = distance
        return _of_distance(number, period, one, other), equal

    def _rows(self, op: LoadOp | StoreOp) -> RowTile | None:
        if op not in self._row_tiles:
            self._row_tiles[op] = row_tile(self._known, op.ptr, op.mask)
        return self._row_tiles[op]

    def _address(self, pointer: SSAValue) -> TileAddress | None:
        if pointer not in self._addresses:
            self._addresses[pointer] = TileAddress.of(self._known, pointer)
        return self._addresses[pointer]


def _of_distance(number: int, period: int, one: TileAddress, other: TileAddress) -> Overlap:
    """Of tiles that are `number` apart plus any multiple of `period`, or of where offsets wrap around."""
    if _are_apart(number, period, one, other):
        return Overlap.APART
    period = gcd(period, WRAP)
    is_same = number % period == 0 and period > max(one.high - other.low, other.high - one.low)
    return Overlap.SAME if is_same and one.of_coordinates == other.of_coordinates else Overlap.MAY


def _are_apart(number: int, period: int, one: TileAddress, other: TileAddress) -> bool:
    """Dimensions of long strides may be endless: elements are then multiples of their strides apart, and what the
    others add. Rows of 128 whose first and second halves are the tiles are so, and `2 * i` and `2 * i + 1`.
    """
    strides = {abs(step) for tile in (one, other) for step, _ in tile.spans}
    reach = abs(number) + sum(tile.high - tile.low for tile in (one, other))
    period = gcd(period, WRAP) if period or reach >= WRAP else 0
    for shortest in (*strides, max(strides, default=0) + 1):  # of those that are endless
        distance = gcd(period, *(stride for stride in strides if stride >= shortest))
        within, other_within = one.within(shortest), other.within(shortest)
        if not _reaches(number, distance, within.low - other_within.high, within.high - other_within.low):
            return True
    return False


def _reaches(number: int, period: int, low: int, high: int) -> bool:
    """Whether a multiple of `period` and `number` are together from `low` to `high`."""
    return (number - low) % period <= high - low if period else low <= number <= high


def _distance(
    known: TilePolynomials, first: Polynomial, second: Polynomial, past: set[Operation], solve: _Solve
) -> tuple[int, int, Alike] | None:
    """The number, of what there may be multiples besides, and which numbers have to be equal for it."""
    found = [_without_indices(known, polynomial, past) for polynomial in (first, second)]
    if None in found or any(changes_in(begin, loop) for begin, _ in found for loop in past):
        return None
    (first_begin, first_period), (second_begin, second_period) = found
    rest = _without_indices(known, second_begin - first_begin, None)
    solved = solve(rest[0]) if rest is not None else None
    if solved is None:
        return None
    left, equal = solved
    number, unknown = left.split(lambda monomial: not monomial)
    return number.number, gcd(first_period, second_period, rest[1], *(factor for _, factor in unknown)), equal


def _in_itself(distance: Polynomial) -> tuple[Polynomial, Alike]:
    return distance, frozenset()


def _if_equal(distance: Polynomial) -> tuple[Polynomial, Alike] | None:
    """The distance in one array, a number where numbers that are equal make it one."""
    own = in_one_array(distance)
    if own is None:
        return None
    number, equal = as_number(own)
    return (own, frozenset()) if number is None else (Polynomial.constant(number), equal)


def _without_indices(
    known: TilePolynomials, polynomial: Polynomial, loops: set[Operation] | None
) -> tuple[Polynomial, int] | None:
    """A polynomial at the beginnings of these loops, or of all, and of what multiples are added later."""
    period = 0
    if loops is not None and not loops:
        return polynomial, period
    while (found := _stepped_in(known, polynomial, loops)) is not None:
        index, stepped = found
        with_index, rest = polynomial.split(lambda monomial, index=index: index in monomial)
        factor = with_index.over(Polynomial.of(index))
        if factor is None or index in factor.atoms:
            return None
        polynomial = rest + factor * stepped.begin
        period = gcd(period, (factor * stepped.step).content)
    return polynomial, period


def _stepped_in(
    known: TilePolynomials, polynomial: Polynomial, loops: set[Operation] | None
) -> tuple[Atom, Stepped] | None:
    """An atom that one of these loops steps; None: any."""
    found = ((atom, stepped_by_loop(known, atom.value)) for atom in sorted(polynomial.atoms))
    return next(((atom, s) for atom, s in found if s is not None and (loops is None or s.loop in loops)), None)
