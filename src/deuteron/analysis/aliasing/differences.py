"""Whether two accesses of one address form may meet, by the quotients, remainders, masks and loops that it is made of.

    x = pid * 64 + arange(0, 64)
    p + x % 4096 + 4096 * (k + i1) + 2097152 * (x // 4096)     for k in range(0, 512, 8), i1 < 8

Two elements, maybe of different iterations, have one address where the differences of its parts make a sum of 0. With d
for a difference and q for x // 4096 that is d(i0) + 4096 * d(k) + 4096 * d(i1) + 2093056 * d(q), to which are known

    d(i0) from -63 to 63, d(i1) from -7 to 7, d(k) a multiple of 8, from -504 to 504
    d(i0) - 4096 * d(q) from -4095 to 4095                     those of remainders
    d(k) + d(i1) from -499 to 499                              where both masks say k + i1 < 500

so that all of them are 0 (bounded_solutions.py): SAME. Addresses are what they are modulo 2**32, as in `overlap.py`: a
multiple of that is one of the parts. What is as it was when the other access was made has no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from deuteron.analysis.addresses.bounded_solutions import Bounded, NoSolution, fixed_values
from deuteron.analysis.addresses.polynomial import Atom, Polynomial, coordinate, sum_of
from deuteron.analysis.addresses.tile_polynomials import is_in
from deuteron.analysis.addresses.tile_quotients import Quotient, TileQuotients
from deuteron.analysis.aliasing.overlap import WRAP, Overlap
from deuteron.analysis.axis.natural import counting_loop
from deuteron.ir.arith import CmpIOp, constant_value
from deuteron.ir.tt.function import FuncOp
from deuteron.ir.tt.memory import LoadOp, StoreOp
from deuteron.ir.tt.shape import BroadcastOp, ExpandDimsOp, SplatOp, TransOp
from deuteron.ir.types import shape_of

# As often as offsets of 32 bits have wrapped around, from one address to the other.
WRAPPED = Polynomial({(Atom(1 << 62),): WRAP})


class Differences:
    """Of the accesses of a function."""

    def __init__(self, func: FuncOp):
        self._known = TileQuotients(func)

    def overlap(self, first: LoadOp | StoreOp, second: LoadOp | StoreOp, past: Iterable[Operation]) -> Overlap:
        """Of two tiles where their masks are on. `past`: the loops that may be in different iterations when it is the
        one and the other.
        """
        pair = _Pair(self._known, shape_of(first.ptr.type), set(past))
        distance = self._distance(first, second, pair)
        if distance is None:
            return Overlap.MAY
        try:
            fixed = fixed_values(distance + WRAPPED, self._bounds(distance, first, second, pair))
        except NoSolution:
            return Overlap.APART
        moved = (coordinate(axis) for axis, extent in enumerate(pair.shape) if extent > 1)
        return Overlap.SAME if all(fixed.get(atom) == 0 for atom in moved) else Overlap.MAY

    def _distance(self, first: LoadOp | StoreOp, second: LoadOp | StoreOp, pair: _Pair) -> Polynomial | None:
        """From one address to the other; None where they are not of one form."""
        if first.ptr.type != second.ptr.type or any(self._known.wraps_in(op.ptr) for op in (first, second)):
            return None
        addresses = [self._known.of(op.ptr) for op in (first, second)]
        if None in addresses:
            return None
        one, other = (address.split(pair.differs) for address in addresses)
        number, difference = (other[1] - one[1]).number, pair.difference(one[0])
        if one[0] != other[0] or number is None or difference is None:
            return None
        return difference + Polynomial.constant(number)

    def _bounds(
        self, distance: Polynomial, first: LoadOp | StoreOp, second: LoadOp | StoreOp, pair: _Pair
    ) -> list[Bounded]:
        limits = _limits(self._known, first.mask) & _limits(self._known, second.mask)
        within = [(pair.difference(natural), limit - 1) for natural, limit in sorted(limits, key=lambda one: one[1])]
        bounds = [_within(form, most) for form, most in within if form is not None]
        atoms = distance.atoms.union(*(one.form.atoms for one in bounds))
        return bounds + pair.bounds_of(atoms)


class _Pair:
    """Two elements of one tile, with the differences of what their addresses are made of."""

    def __init__(self, known: TileQuotients, shape: tuple[int, ...], past: set[Operation]):
        self.shape = shape
        self._known, self._past = known, past

    def differs(self, monomial: Iterable[Atom]) -> bool:
        return any(map(self._is_different, monomial))

    def difference(self, polynomial: Polynomial) -> Polynomial | None:
        """In atoms that stand for their own differences, but indices of loops for that of their iterations; None where
        it is a product that differs.
        """
        varying, _ = polynomial.split(self.differs)
        if varying.degree > 1:
            return None
        return sum_of(Polynomial({(atom,): factor * self._step(atom)}) for (atom,), factor in varying)

    def bounds_of(self, atoms: Iterable[Atom]) -> list[Bounded]:
        """What is known of atoms, and of what these are made of."""
        found = self._with_parts(atoms)
        known = [(Polynomial.of(atom), self._most(atom)) for atom in found]
        bounds = [_within(form, most) for form, most in known if most is not None]
        quotients = [(atom, quotient) for atom in found if (quotient := self._known.quotient_of(atom)) is not None]
        for atom, quotient in quotients:
            bounds += self._remainders(atom, quotient, quotients)
        return bounds

    def _with_parts(self, atoms: Iterable[Atom]) -> list[Atom]:
        """With those of the dividends that differ."""
        pending, found = sorted(atoms), dict[Atom, None]()
        while pending:
            atom = pending.pop()
            quotient = self._known.quotient_of(atom)
            parts = sorted(quotient.dividend.atoms) if quotient is not None else ()
            pending += [part for part in parts if part not in found and self._is_different(part)]
            found[atom] = None
        return list(found)

    def _remainders(self, atom: Atom, quotient: Quotient, others: Iterable[tuple[Atom, Quotient]]) -> Iterator[Bounded]:
        """Of a dividend, and of its quotients by what divides the divisor: x // 64 - 32 * (x // 2048) is below 32."""
        form = self.difference(quotient.dividend)
        if form is not None:
            yield _remainder(form, atom, quotient.divisor)
        for other, finer in others:
            ratio, rest = divmod(quotient.divisor, finer.divisor)
            if finer.dividend == quotient.dividend and ratio > 1 and not rest:
                yield _remainder(Polynomial.of(other), atom, ratio)

    def _most(self, atom: Atom) -> int | None:
        """How large the difference is at most."""
        quotient = self._known.quotient_of(atom)
        if quotient is not None:
            form = self.difference(quotient.dividend)
            total = None if form is None else self._most_of(form)
            return None if total is None else -(-total // quotient.divisor)
        if atom.axis is not None:
            return self.shape[atom.axis] - 1
        return self._last_iteration(atom)

    def _most_of(self, form: Polynomial) -> int | None:
        terms = [(factor, self._most(atom)) for (atom,), factor in form]
        return None if any(most is None for _, most in terms) else sum(abs(factor) * most for factor, most in terms)

    def _is_different(self, atom: Atom) -> bool:
        quotient = self._known.quotient_of(atom)
        if quotient is not None:
            return any(map(self._is_different, quotient.dividend.atoms))
        return atom.axis is not None or any(is_in(atom.value, loop) for loop in self._past)

    def _step(self, atom: Atom) -> int:
        """By what it differs from one iteration to the next, where a loop counts in it from what is the same."""
        loop = self._counting(atom)
        return 1 if loop is None else constant_value(loop.step)

    def _last_iteration(self, atom: Atom) -> int | None:
        """The number of the last iteration of a loop that counts in an atom, from 0."""
        loop = self._counting(atom)
        begin, end = (None, None) if loop is None else (constant_value(loop.lb), constant_value(loop.ub))
        return None if begin is None or end is None else max(end - 1 - begin, 0) // constant_value(loop.step)

    def _counting(self, atom: Atom) -> scf.ForOp | None:
        loop = counting_loop(atom.value) if isinstance(atom.value, BlockArgument) else None
        begin = None if loop is None else self._known.of(loop.lb)
        return None if begin is None or any(map(self._is_different, begin.atoms)) else loop


def _within(form: Polynomial, most: int) -> Bounded:
    return Bounded(form, -most, most)


def _remainder(dividend: Polynomial, quotient: Atom, divisor: int) -> Bounded:
    return _within(dividend - Polynomial({(quotient,): divisor}), divisor - 1)


def _limits(known: TileQuotients, mask: SSAValue | None) -> set[tuple[Polynomial, int]]:
    """What is not negative, and below a number, where a mask is on."""
    op = None if mask is None else mask.owner
    if isinstance(op, arith.AndIOp):
        return _limits(known, op.lhs) | _limits(known, op.rhs)
    if isinstance(op, BroadcastOp | SplatOp):
        return _limits(known, op.src)
    if isinstance(op, ExpandDimsOp | TransOp):
        return {(known.with_axes(op, natural), limit) for natural, limit in _limits(known, op.src)}
    return _compared(known, op) if isinstance(op, CmpIOp) else set()


def _compared(known: TileQuotients, op: CmpIOp) -> set[tuple[Polynomial, int]]:
    natural, limit = known.of(op.lhs), constant_value(op.rhs)
    is_limit = op.predicate_name in ("slt", "ult") and natural is not None and limit is not None and limit > 0
    return {(natural, limit)} if is_limit and known.is_natural(op.lhs) else set()
