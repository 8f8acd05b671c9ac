"""How far two accesses through different arguments are apart, if these are one array.

    b + i * n + 4 - (a + i * n)         where a and b are one array: 4
    b + i * m - (a + i * n)             and where the numbers n and m are equal: 0
    b + j - (a + i)                     not known

Distances are polynomials (tile_address.py), in elements.
"""

from __future__ import annotations

from itertools import permutations, starmap

from xdsl.ir import SSAValue

from deuteron.analysis.addresses.polynomial import Atom, Monomial, Polynomial
from deuteron.analysis.aliasing.points_to import is_argument
from deuteron.analysis.aliasing.same_offsets import Alike
from deuteron.ir.types import is_pointer


def in_one_array(distance: Polynomial) -> Polynomial | None:
    """The distance without the arguments that both begin with; None where they begin with something else."""
    own, bases = distance.split(lambda monomial: not any(_is_base(atom) for atom in monomial))
    is_plain = all(is_argument(atom.value) for monomial, _ in bases for atom in monomial)
    return own if is_plain else None


def as_number(distance: Polynomial) -> tuple[int | None, Alike]:
    """The number that a distance is where terms cancel that differ in an argument: `row * stride - row * other`."""
    equal: set[tuple[SSAValue, SSAValue]] = set()
    while distance.number is None:
        found = next(filter(None, starmap(_difference, permutations(distance, 2))), None)
        if found is None:
            return None, frozenset()
        first, second = found
        equal.add((first.value, second.value))
        distance = distance.renamed(lambda atom, a=first, b=second: a if atom == b else atom)
    return distance.number, frozenset(equal)


def _is_base(atom: Atom) -> bool:
    return atom.value is not None and is_pointer(atom.value.type)


def _difference(first: tuple[Monomial, int], second: tuple[Monomial, int]) -> tuple[Atom, Atom] | None:
    """The arguments, of one type, in which alone two terms differ that would cancel."""
    (one, factor), (other, other_factor) = first, second
    own, others = ([a for a in m if m.count(a) != n.count(a)] for m, n in ((one, other), (other, one)))
    if factor != -other_factor or len(own) != 1 or len(others) != 1:
        return None
    values = own[0].value, others[0].value
    is_given = all(value is not None and is_argument(value) for value in values)
    return (own[0], others[0]) if is_given and values[0].type == values[1].type else None
