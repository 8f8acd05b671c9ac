"""What holds in all integer solutions of a linear equation, where bounds of linear forms are known.

    x + 64 * y = 0        for x from -63 to 63                 x = 0, y = 0: sums of mixed radix have one way only
    x + 64 * y = 32       for x from -63 to 63                 nothing: (32, 0) and (-32, 1)
    x + 64 * y = 32       for x from 0 to 31                   no solution
    x + 2 * q = 0         for x - 50 * q from -49 to 49        x = 0, q = 0

An equation is cut in two where the part whose bounds are known has but one value that what is left, a multiple of some
number, leaves it. What is found is right; not all is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from deuteron.analysis.addresses.polynomial import Atom, Polynomial, sum_of


@dataclass(frozen=True)
class Bounded:
    """A linear form of which it is known that it is from `low` to `high`."""

    form: Polynomial
    low: int
    high: int

    def scaled(self, factor: int) -> Bounded:
        low, high = sorted((factor * self.low, factor * self.high))
        return Bounded(self.form * Polynomial.constant(factor), low, high)


class NoSolution(Exception):
    """The equation holds for no integers within the bounds."""


def fixed_values(equation: Polynomial, bounds: Iterable[Bounded]) -> dict[Atom, int]:
    """The atoms that are the same number wherever the equation is 0, which is linear in them."""
    search = _Search([equation], list(bounds))
    while search.simplify() or search.cut():
        pass
    return search.values


class _Search:
    """Equations that hold together; each cut leaves smaller ones."""

    def __init__(self, equations: list[Polynomial], bounds: list[Bounded]):
        self.values: dict[Atom, int] = {}
        self._equations, self._bounds = equations, bounds
        self._cut: set[Polynomial] = set()  # what was cut out, but for a factor: it would come back from what is left

    def simplify(self) -> bool:
        """Put in the value of an atom, where an equation or its bounds say it."""
        bounds = [Bounded(equation, 0, 0) for equation in self._equations] + self._bounds
        found = next((value for one in bounds if (value := _value_in(one)) is not None), None)
        if found is None:
            return False
        atom, number = found
        self.values[atom] = number
        self._equations = [_with(equation, atom, number) for equation in self._equations]
        self._bounds = [Bounded(_with(one.form, atom, number), one.low, one.high) for one in self._bounds]
        return True

    def cut(self) -> bool:
        """Make two equations of one."""
        for equation in self._equations:
            _check_divisible(equation)
            for part in self._parts(equation):
                rest = equation - part.form
                value = _only_value(part, rest)
                direction = _direction(part.form)
                if value is None or not rest.atoms or direction in self._cut:
                    continue
                self._cut.add(direction)
                self._equations.remove(equation)
                self._equations += (part.form - Polynomial.constant(value), rest + Polynomial.constant(value))
                return True
        return False

    def _parts(self, equation: Polynomial) -> Iterator[Bounded]:
        """What has bounds, and takes atoms out of the equation."""
        for one in self._bounds:
            parts = (one.scaled(factor) for factor in sorted(_factors(equation, one.form)))
            yield from (part for part in parts if (equation - part.form).atoms < equation.atoms)
        yield from self._sums(equation)

    def _sums(self, equation: Polynomial) -> Iterator[Bounded]:
        """Of the terms with the least factors."""
        of_atom = {one.form: one for one in self._bounds if one.form.num_terms == 1}
        terms = sorted(((m, factor) for m, factor in equation if m), key=lambda term: (abs(term[1]), term[0]))
        known: list[Bounded] = []
        for monomial, factor in terms[:-1]:
            one = of_atom.get(Polynomial.of(*monomial))
            if one is None:
                return
            known.append(one.scaled(factor))
            yield Bounded(sum_of(o.form for o in known), sum(o.low for o in known), sum(o.high for o in known))


def _factors(equation: Polynomial, form: Polynomial) -> set[int]:
    """By which a form has to be multiplied to take an atom out of an equation."""
    return {
        equation.factor_of(monomial) // factor
        for monomial, factor in form
        if monomial and equation.factor_of(monomial) and equation.factor_of(monomial) % factor == 0
    }


def _direction(form: Polynomial) -> Polynomial:
    """What all multiples of a form have in common."""
    content, (_, first) = form.content, min(form)
    factor = content if first > 0 else -content
    return Polynomial({monomial: number // factor for monomial, number in form})


def _only_value(part: Bounded, rest: Polynomial) -> int | None:
    """The one value that a part has where what is left makes the sum 0; None where there are several."""
    number, others = rest.factor_of(()), rest.split(lambda monomial: bool(monomial))[0]
    period = others.content
    if not period:
        return _checked(part, -number)
    first = part.low + (-number - part.low) % period
    return _checked(part, first) if first + period > part.high else None


def _check_divisible(equation: Polynomial) -> None:
    number, form = equation.split(lambda monomial: not monomial)
    if number.content % (form.content or 1):
        raise NoSolution


def _checked(part: Bounded, value: int) -> int:
    if not part.low <= value <= part.high:
        raise NoSolution
    return value


def _value_in(bounds: Bounded) -> tuple[Atom, int] | None:
    """The atom that has one value within bounds, which have no other atom."""
    number, form = bounds.form.factor_of(()), bounds.form.split(lambda monomial: bool(monomial))[0]
    if form.num_terms > 1:
        return None
    low, high = bounds.low - number, bounds.high - number
    if not form.num_terms:
        _checked(Bounded(form, low, high), 0)
        return None
    (((atom,), factor),) = form
    if factor < 0:
        low, high, factor = -high, -low, -factor
    least, most = -(-low // factor), high // factor
    if least > most:
        raise NoSolution
    return (atom, least) if least == most else None


def _with(polynomial: Polynomial, atom: Atom, number: int) -> Polynomial:
    with_atom, rest = polynomial.split(lambda monomial: atom in monomial)
    return rest + Polynomial.constant(with_atom.factor_of((atom,)) * number)
