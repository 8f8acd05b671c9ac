"""Polynomials with integer coefficients over scalars of a kernel and over the coordinates of a tile.

    rows * stride + columns + 64 * k        {(rows, stride): 1, (columns,): 1, (k,): 64}

Atoms are numbered in the order in which they are met, so that what is built of a polynomial comes in the same order in
every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import gcd

from xdsl.ir import SSAValue

from deuteron.dtypes import as_signed


@dataclass(frozen=True, order=True)
class Atom:
    """A scalar of the kernel, or what a loop carries; the coordinate of a tile along `axis` where there is no value."""

    number: int
    value: SSAValue | None = field(default=None, compare=False)

    @property
    def axis(self) -> int | None:
        return -1 - self.number if self.value is None else None


def coordinate(axis: int) -> Atom:
    """The coordinate along a dimension of a tile."""
    return Atom(-1 - axis)


Monomial = tuple[Atom, ...]


class Polynomial:
    """Never changed once made; terms with coefficient 0 are left out."""

    def __init__(self, terms: dict[Monomial, int]):
        self._terms = {monomial: factor for monomial, factor in terms.items() if factor}

    @staticmethod
    def constant(number: int) -> Polynomial:
        return Polynomial({(): number})

    @staticmethod
    def of(*atoms: Atom) -> Polynomial:
        """The product of atoms."""
        return Polynomial({tuple(sorted(atoms)): 1})

    def __iter__(self) -> Iterator[tuple[Monomial, int]]:
        return iter(self._terms.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polynomial) and self._terms == other._terms

    def __hash__(self) -> int:
        return hash(frozenset(self._terms.items()))

    def __repr__(self) -> str:
        return f"Polynomial({self._terms})"

    def __add__(self, other: Polynomial) -> Polynomial:
        total = dict(self._terms)
        for monomial, factor in other:
            total[monomial] = total.get(monomial, 0) + factor
        return Polynomial(total)

    def __neg__(self) -> Polynomial:
        return Polynomial({monomial: -factor for monomial, factor in self})

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        total: dict[Monomial, int] = {}
        for one, a in self:
            for two, b in other:
                product = tuple(sorted(one + two))
                total[product] = total.get(product, 0) + a * b
        return Polynomial(total)

    @property
    def num_terms(self) -> int:
        return len(self._terms)

    @property
    def degree(self) -> int:
        """The most factors of a term."""
        return max(map(len, self._terms), default=0)

    @property
    def atoms(self) -> set[Atom]:
        return {atom for monomial in self._terms for atom in monomial}

    @property
    def number(self) -> int | None:
        """Its value, where no atom is in it."""
        return None if self.atoms else self._terms.get((), 0)

    @property
    def content(self) -> int:
        """The greatest number that its value is a multiple of, whatever the atoms are."""
        return gcd(*self._terms.values())

    def factor_of(self, monomial: Monomial) -> int:
        """The number that stands before some atoms; () stands for the number without any."""
        return self._terms.get(monomial, 0)

    def wrapped(self, bits: int) -> Polynomial:
        """The same of integers of so many bits, in which factors that these cannot hold are others."""
        limit = 1 << bits - 1
        if all(-limit <= factor < limit for factor in self._terms.values()):
            return self
        return Polynomial({monomial: as_signed(factor, bits) for monomial, factor in self})

    def over(self, divisor: Polynomial) -> Polynomial | None:
        """The quotient by a polynomial of one term, where it divides every term."""
        if len(divisor._terms) != 1:
            return None
        ((below, factor),) = divisor
        quotients = [(_without(monomial, below), a, a % factor) for monomial, a in self]
        if any(monomial is None or remainder for monomial, _, remainder in quotients):
            return None
        return Polynomial({monomial: a // factor for monomial, a, _ in quotients})

    def split(self, belongs: Callable[[Monomial], bool]) -> tuple[Polynomial, Polynomial]:
        """The terms that a condition holds of, and the others."""
        chosen = {monomial: factor for monomial, factor in self if belongs(monomial)}
        return Polynomial(chosen), Polynomial({m: factor for m, factor in self if m not in chosen})

    def renamed(self, rename: Callable[[Atom], Atom]) -> Polynomial:
        """With other atoms in the place of these."""
        return sum_of(Polynomial({tuple(sorted(map(rename, m))): factor}) for m, factor in self)


def sum_of(terms: Iterable[Polynomial]) -> Polynomial:
    return sum(terms, Polynomial({}))


def _without(monomial: Monomial, below: Monomial) -> Monomial | None:
    left = list(monomial)
    for atom in below:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)
